"use strict";
// worldloom.tracksCamera(about): where one looks from, and where places of the box land on the screen.
//
// A place is given by its share of the box along each axis, 0 to 1. The world has the box around
// its origin, the longest side 1 long.
(() => {
  const loom = (window.worldloom ??= {});
  const FOV = 0.6; // radians from top to bottom
  const LIMIT = Math.PI / 2 - 0.02;

  loom.tracksCamera = function (about) {
    const flat = about.dim === 2;
    const scale = [...about.scale, 0].slice(0, 3);
    const start = flat
      ? { yaw: 0, pitch: Math.PI / 2, zoom: 1, pan: [0, 0] }
      : { yaw: -0.7, pitch: 0.42, zoom: 1, pan: [0, 0] };
    const camera = { flat, scale, width: 1, height: 1, ...structuredClone(start) };

    camera.reset = () => Object.assign(camera, structuredClone(start));
    camera.turn = (dx, dy) => {
      if (flat) return;
      camera.yaw -= dx;
      camera.pitch = Math.min(Math.max(camera.pitch + dy, -LIMIT), LIMIT);
    };
    camera.move = (dx, dy) => { // pixels
      const size = pixels() * camera.zoom;
      camera.pan[0] += dx / size;
      camera.pan[1] -= dy / size;
    };
    // Zoom by a factor, so that what is at (x, y) from the middle stays there.
    camera.magnify = (factor, x = 0, y = 0) => {
      const before = camera.zoom;
      camera.zoom = Math.min(Math.max(before * factor, 0.3), 60);
      const size = pixels();
      camera.pan[0] += (x / size) * (1 / camera.zoom - 1 / before);
      camera.pan[1] -= (y / size) * (1 / camera.zoom - 1 / before);
    };

    const radius = Math.hypot(...scale) / 2;
    // Pixels of a world length in the middle of the picture, at zoom 1.
    function pixels() {
      if (flat) {
        return Math.min((camera.width - 110) / scale[0], (camera.height - 112) / scale[1]);
      }
      return Math.min(camera.width, camera.height) / (2 * radius * 1.12);
    }

    // Rows of a 4 x 4 matrix from world to clip coordinates.
    camera.matrix = () => {
      const { yaw, pitch, width, height } = camera;
      const [cy, sy, cp, sp] = [Math.cos(yaw), Math.sin(yaw), Math.cos(pitch), Math.sin(pitch)];
      const right = [cy, sy, 0];
      const up = flat ? [0, 1, 0] : [-sy * sp, cy * sp, cp];
      const back = flat ? [0, 0, 1] : [sy * cp, -cy * cp, sp]; // from the box to the eye
      const size = pixels() * camera.zoom;
      const [fx, fy] = [(2 * size) / width, (2 * size) / height];
      const [px, py] = camera.pan;
      if (flat) {
        return [
          [fx, 0, 0, fx * px],
          [0, fy, 0, fy * py - 16 / height], // room above for what stands there
          [0, 0, -0.5, 0],
          [0, 0, 0, 1],
        ];
      }
      // The eye is `far` away; lengths in the plane of the middle keep their size on the screen.
      const far = 1 / (2 * Math.tan(FOV / 2)) * 2 * radius * 1.02;
      const w = [...back.map((b) => -b / far), 1];
      const near = 0.05;
      const depth = back.map((b) => -b / (2 * radius + near));
      return [
        [...right.map((r) => fx * r), 0].map((v, i) => v + fx * px * w[i]),
        [...up.map((u) => fy * u), 0].map((v, i) => v + fy * py * w[i]),
        [...depth, 0],
        w,
      ];
    };

    // A function from shares of the box to [x, y, w] in pixels; w shrinks with nearness.
    camera.projector = () => {
      const m = camera.matrix();
      const [hw, hh] = [camera.width / 2, camera.height / 2];
      const [sx, sy, sz] = scale;
      return (x, y, z) => {
        const [a, b, c] = [(x - 0.5) * sx, (y - 0.5) * sy, (z - 0.5) * sz];
        const w = m[3][0] * a + m[3][1] * b + m[3][2] * c + m[3][3];
        const px = (m[0][0] * a + m[0][1] * b + m[0][2] * c + m[0][3]) / w;
        const py = (m[1][0] * a + m[1][1] * b + m[1][2] * c + m[1][3]) / w;
        return [hw + px * hw, hh - py * hh, w];
      };
    };
    return camera;
  };

  // Round numbers between two others, about `count` of them.
  loom.ticks = function (low, high, count) {
    const raw = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= raw * 0.99);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
      found.push(Number((k * step).toPrecision(12)));
    }
    return found;
  };

  // Draws the far sides of the box with a grid and numbers: those that the tracks hide, not the near.
  loom.drawAxes = function (context, camera, about) {
    const project = camera.projector();
    const { dim, low, high, axes } = about;
    const extent = low.map((l, i) => high[i] - l);
    const share = (i, value) => (value - low[i]) / extent[i];
    const corner = (x, y, z) => project(x, y, z);
    const line = (a, b) => {
      context.moveTo(a[0], a[1]);
      context.lineTo(b[0], b[1]);
    };
    const colours = { grid: "rgba(160,180,210,.16)", edge: "rgba(170,190,220,.45)", text: "#9fb0c8" };
    context.font = "12px ui-sans-serif, system-ui, sans-serif";
    context.lineWidth = 1;

    // The far side along each axis is 0 or 1.
    const far = [0, 1, 2].map((axis) => {
      if (dim === 2) return 0;
      const at = [0.5, 0.5, 0.5];
      at[axis] = 0;
      const a = corner(...at)[2];
      at[axis] = 1;
      return a > corner(...at)[2] ? 0 : 1;
    });
    const wanted = (dim === 2 ? 8 : 6) * (camera.width < 500 ? 0.6 : 1);
    const marks = low.map((l, i) => loom.ticks(l, high[i], Math.max(2, Math.round(wanted * Math.sqrt(camera.scale[i])))));
    const place = (pairs) => {
      const at = [...far];
      for (const [axis, value] of pairs) at[axis] = value;
      return dim === 2 ? corner(at[0], at[1], 0.5) : corner(...at);
    };

    context.beginPath();
    for (let axis = 0; axis < dim; axis++) {
      for (const other of [0, 1, 2].filter((o) => o !== axis && o < dim)) {
        for (const value of marks[axis]) {
          const s = share(axis, value);
          line(place([[axis, s], [other, 0]]), place([[axis, s], [other, 1]]));
        }
      }
    }
    context.strokeStyle = colours.grid;
    context.stroke();
    context.beginPath();
    for (let axis = 0; axis < dim; axis++) {
      for (const other of [0, 1, 2].filter((o) => o !== axis && o < dim)) {
        for (const side of [0, 1]) {
          line(place([[axis, side], [other, 0]]), place([[axis, side], [other, 1]]));
        }
      }
    }
    context.strokeStyle = colours.edge;
    context.stroke();

    // Numbers stand along the edge of each axis that is lowest (x, y) or furthest left (z).
    const middle = dim === 2 ? corner(0.5, 0.5, 0.5) : project(0.5, 0.5, 0.5);
    for (let axis = 0; axis < dim; axis++) {
      const others = [0, 1, 2].filter((o) => o !== axis && o < dim);
      let best = null;
      for (const sides of others.length === 1 ? [[0]] : [[0, 1], [1, 0]]) {
        // An edge on the outline: one of its sides is far, the other near.
        const pairs = others.map((o, k) => [o, dim === 2 ? sides[k] : sides[k] ? 1 - far[o] : far[o]]);
        const mid = place([[axis, 0.5], ...pairs]);
        const score = axis === 2 ? -mid[0] : mid[1];
        if (!best || score > best.score) best = { pairs, mid, score };
      }
      const [a, b] = [place([[axis, 0], ...best.pairs]), place([[axis, 1], ...best.pairs])];
      const along = Math.hypot(b[0] - a[0], b[1] - a[1]);
      let away = dim === 2
        ? (axis === 0 ? [0, 1] : [-1, 0])
        : [best.mid[0] - middle[0], best.mid[1] - middle[1]];
      const norm = Math.hypot(...away) || 1;
      away = away.map((v) => v / norm);
      if (along < 40) continue;
      context.fillStyle = colours.text;
      context.textAlign = away[0] > 0.4 ? "left" : away[0] < -0.4 ? "right" : "center";
      context.textBaseline = away[1] > 0.4 ? "top" : away[1] < -0.4 ? "bottom" : "middle";
      const keep = Math.ceil((marks[axis].length * (Math.abs(b[0] - a[0]) > Math.abs(b[1] - a[1]) ? 34 : 18)) / along);
      marks[axis].forEach((value, k) => {
        if (k % keep) return;
        const at = place([[axis, share(axis, value)], ...best.pairs]);
        context.fillText(loom.number(value, extent[axis]), at[0] + 7 * away[0], at[1] + 7 * away[1]);
      });
      context.fillStyle = "#dfe7f3";
      const out = dim === 2 ? (axis === 0 ? 24 : 46) : 40;
      context.fillText(axes[axis] ?? "", best.mid[0] + out * away[0], best.mid[1] + out * away[1]);
    }
  };

  // A number with as many digits as tell it from others in a range.
  loom.number = function (value, range) {
    if (Math.abs(value) < 1e-9 * range) return "0";
    const largest = Math.max(Math.abs(value), range);
    if (largest >= 1e12 || largest < 1e-3) {
      const digits = Math.min(2 + Math.max(Math.ceil(Math.log10(largest / range)), 0), 15);
      return value.toExponential(digits).replace(/\.?0+e/, "e");
    }
    const digits = Math.min(Math.max(2 - Math.floor(Math.log10(range)), 0), 8);
    if (largest < 1e6) return String(Number(value.toFixed(digits)));
    return Number(value.toFixed(digits)).toLocaleString("en", { maximumFractionDigits: digits });
  };
})();
