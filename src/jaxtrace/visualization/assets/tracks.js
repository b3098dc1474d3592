"use strict";
// Turns every figure.tracks into a viewer when it comes near the screen.
(() => {
  const loom = window.worldloom;
  const STEPS = 12; // pictures from one record to the next
  const RAMP = ["#5b4fd0", "#3f7fd6", "#22a8a6", "#5fc968", "#c9de3c", "#fff27a"];
  const STATUS = ["#55b4ff", "#6d7a90", "#ffb454", "#ff6b6b", "#e6c65c", "#ff4fa3", "#b884ff", "#9aa7ba"];
  const TRAILS = { none: 0, short: 4, long: 14 };
  const ICONS = {
    "Zoom in": "M12 5v14M5 12h14",
    "Zoom out": "M5 12h14",
    "Reset view": "M4 12a8 8 0 1 0 2.500-5.800M4 4v4.500h4.500",
    "Full screen": "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
  };

  function make(tag, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  }
  const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const word = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

  function ramp() {
    const stops = RAMP.map(rgb);
    return Uint32Array.from({ length: 256 }, (_, i) => {
      const at = (i / 255) * (stops.length - 1);
      const k = Math.min(Math.floor(at), stops.length - 2);
      return word(stops[k].map((c, j) => Math.round(c + (stops[k + 1][j] - c) * (at - k))));
    });
  }
  const statusMap = () => Uint32Array.from({ length: 256 }, (_, i) => word(rgb(STATUS[i >> 4] ?? "#ffffff")));

  // The arrays that `_pack.py` wrote, as the painters want them.
  function read(bytes, about) {
    const { count, dim } = about, frames = about.times.length, size = frames * count;
    let at = 0;
    const take = () => bytes.subarray(at, (at += size));
    const positions = new Uint16Array(size * dim);
    for (let axis = 0; axis < dim; axis++) {
      const low = take(), high = take();
      for (let i = 0; i < size; i++) {
        const coded = low[i] + (high[i] << 8), bend = (coded >>> 1) ^ -(coded & 1);
        const one = i < count ? 0 : positions[(i - count) * dim + axis];
        const two = i < 2 * count ? 0 : positions[(i - 2 * count) * dim + axis];
        positions[i * dim + axis] = 2 * one - two + bend;
      }
    }
    const flags = take();
    const colours = { status: flags.map((flag) => ((flag & 15) << 4) | 8) };
    for (const name of Object.keys(about.ranges)) {
      const values = take();
      for (let i = count; i < size; i++) values[i] += values[i - count];
      colours[name] = values.slice();
    }
    return { count, frames, dim, positions, flags: flags.slice(), colours, wanted: location.hash.slice(1) };
  }

  function buttons(actions) {
    const row = make("div", "tracks-zoom");
    for (const [label, action] of Object.entries(actions)) {
      const button = make("button");
      button.type = "button";
      button.innerHTML = `<svg viewBox="0 0 24 24" aria-hidden="true"><path d="${ICONS[label]}"/></svg>`;
      button.setAttribute("aria-label", label);
      button.title = label;
      button.addEventListener("click", action);
      row.append(button);
    }
    return row;
  }
  function chosen(label, options, value, change) {
    const box = make("label", "", label), select = make("select");
    for (const option of options) select.add(new Option(option, option, false, option === value));
    select.addEventListener("change", () => change(select.value));
    box.append(select);
    return [box, select];
  }

  function start(figure) {
    const about = JSON.parse(figure.querySelector(".about").textContent);
    const data = figure.querySelector(".data");
    const tracks = read(loom.unpack(data.textContent), about);
    data.remove();
    const frames = tracks.frames, camera = loom.tracksCamera(about);
    const stage = figure.querySelector(".tracks-stage");
    stage.replaceChildren();
    const under = make("canvas"), canvas = make("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Particles in ${about.dim} dimensions`);
    stage.append(under, canvas);
    const painter = loom.tracksPainter(canvas, tracks);
    const maps = { range: ramp(), status: statusMap() };
    const span = Math.abs(about.times[frames - 1] - about.times[0]) || 1;
    const look = {
      frame: 0, part: 0, colour: about.colour, trail: tracks.count <= 8000 ? TRAILS.short : 0,
      ended: true, point: 1,
    };
    const readout = make("div", "tracks-readout"), legend = make("div", "tracks-legend");
    const clock = make("strong"), moving = make("span");
    readout.append(clock, moving);
    readout.setAttribute("aria-live", "off");
    stage.append(readout, legend);

    let waiting = false;
    const refresh = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        render();
      });
    };
    function render() {
      const context = under.getContext("2d"), ratio = under.width / camera.width;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, camera.width, camera.height);
      loom.drawAxes(context, camera, about);
      const fit = Math.min(Math.max(Math.min(camera.width, camera.height) / 520, 0.55), 1.5);
      const size = Math.min(Math.max(60 / tracks.count ** 0.3, 1.8), 7) * look.point * fit * Math.sqrt(Math.max(camera.zoom, 0.5));
      look.byStatus = look.colour === "status";
      look.map = look.byStatus ? maps.status : maps.range;
      painter.paint(camera, { ...look, size });
    }
    function resize() {
      const ratio = Math.min(devicePixelRatio || 1, 2);
      camera.width = stage.clientWidth;
      camera.height = stage.clientHeight;
      for (const one of [under, canvas]) {
        one.width = Math.round(camera.width * ratio);
        one.height = Math.round(camera.height * ratio);
      }
      render();
    }
    const timeAt = (index) => {
      const k = Math.floor(index / STEPS), part = (index % STEPS) / STEPS;
      const next = Math.min(k + 1, frames - 1);
      return about.times[k] + (about.times[next] - about.times[k]) * part;
    };
    // Dates: of any moment where the calendar is the browser's own, else those of records.
    const shown = span < 600 ? 19 : 16;
    const dateAt = (index) => {
      if (about.dates === null) return null;
      if (about.start === null) return about.dates[Math.floor(index / STEPS)];
      const moment = new Date(about.start + 1000 * (timeAt(index) - about.times[0]));
      return moment.toISOString().slice(0, shown).replace("T", " ");
    };
    const label = (index) => dateAt(index) ?? `t = ${loom.number(timeAt(index), span)}`;
    function draw(index) {
      look.frame = Math.floor(index / STEPS);
      look.part = (index % STEPS) / STEPS;
      clock.textContent = label(index);
      moving.textContent = `${about.alive[look.frame].toLocaleString("en")} of ${about.total.toLocaleString("en")} alive`;
      if (look.colour === "status") describe();
      refresh();
    }
    function describe() {
      legend.replaceChildren(make("span", "name", look.colour));
      if (look.colour === "status") {
        const counts = new Map();
        const at = look.frame * tracks.count;
        for (let i = 0; i < tracks.count; i++) {
          const status = tracks.flags[at + i] & 15;
          counts.set(status, (counts.get(status) ?? 0) + 1);
        }
        for (const [status, n] of [...counts].sort((a, b) => a[0] - b[0])) {
          const entry = make("span", "swatch", `${about.status[status]} ${n.toLocaleString("en")}`);
          entry.style.setProperty("--swatch", STATUS[status]);
          legend.append(entry);
        }
        return;
      }
      const [low, high] = about.ranges[look.colour];
      const bar = make("span", "bar"), ends = make("span", "ends");
      bar.style.background = `linear-gradient(to right, ${RAMP.join(", ")})`;
      ends.append(make("span", "", loom.number(low, high - low)), make("span", "", loom.number(high, high - low)));
      legend.append(bar, ends);
    }

    const controls = make("div"), options = make("div", "tracks-options");
    stage.after(controls, options);
    const names = [...Object.keys(about.ranges), "status"];
    const colourTo = (name) => {
      look.colour = colours.value = name;
      describe();
      refresh();
    };
    const trailTo = (name) => {
      look.trail = TRAILS[(trails.value = name)];
      refresh();
    };
    const [colourBox, colours] = chosen("Colour", names, about.colour, colourTo);
    const [trailBox, trails] = chosen("Trails", Object.keys(TRAILS), look.trail ? "short" : "none", trailTo);
    const sizeBox = make("label", "", "Size"), size = make("input");
    Object.assign(size, { type: "range", min: 0.3, max: 3, step: 0.1, value: 1 });
    size.addEventListener("input", () => {
      look.point = Number(size.value);
      refresh();
    });
    sizeBox.append(size);
    const endedBox = make("label", "", ""), ended = make("input");
    Object.assign(ended, { type: "checkbox", checked: true });
    ended.addEventListener("change", () => {
      look.ended = ended.checked;
      refresh();
    });
    endedBox.append(ended, "Ended particles");
    options.append(colourBox, trailBox, sizeBox);
    if (tracks.flags.some((flag) => (flag & 15) > 1)) options.append(endedBox);
    const notes = [];
    if (tracks.count < about.total) notes.push(`${tracks.count.toLocaleString("en")} of ${about.total.toLocaleString("en")} particles are drawn`);
    if (frames < about.records) notes.push(`${frames} of ${about.records.toLocaleString("en")} records`);
    if (about.stretched) notes.push("axes are not to scale");
    if (notes.length) options.append(make("span", "tracks-note", notes.join("; ")));

    const view = (change) => () => {
      change();
      refresh();
    };
    const actions = {
      "Zoom in": view(() => camera.magnify(1.4)),
      "Zoom out": view(() => camera.magnify(1 / 1.4)),
      "Reset view": view(camera.reset),
    };
    if (document.fullscreenEnabled) {
      actions["Full screen"] = () =>
        document.fullscreenElement ? document.exitFullscreen() : figure.requestFullscreen();
    }
    stage.append(buttons(actions));

    const count = (frames - 1) * STEPS + 1;
    // Before the transport listens: arrows go from record to record, not from picture to picture.
    figure.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
      const next = (list, now) => list[(list.indexOf(now) + 1) % list.length];
      const keys = {
        ArrowLeft: () => step(event.shiftKey ? -10 : -1),
        ArrowRight: () => step(event.shiftKey ? 10 : 1),
        "+": () => camera.magnify(1.25),
        "=": () => camera.magnify(1.25),
        "-": () => camera.magnify(0.8),
        a: () => camera.turn(-0.12, 0),
        d: () => camera.turn(0.12, 0),
        w: () => camera.turn(0, 0.12),
        s: () => camera.turn(0, -0.12),
        r: camera.reset,
        c: () => colourTo(next(names, look.colour)),
        t: () => trailTo(next(Object.keys(TRAILS), trails.value)),
      };
      if (!keys[event.key] || (event.target === size && event.key.startsWith("Arrow"))) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      keys[event.key]();
      refresh();
    });
    const player = loom.transport(figure, { count, fps: count / about.seconds, draw, label, name: "the run", controls });
    function step(by) {
      player.pause();
      const now = player.frame / STEPS;
      player.seek(STEPS * (by > 0 ? Math.floor(now) + by : Math.ceil(now) + by));
    }

    const fingers = new Map();
    const spread = () => {
      const [a, b] = [...fingers.values()];
      return Math.hypot(a.x - b.x, a.y - b.y);
    };
    stage.addEventListener("pointerdown", (event) => {
      if (event.target.closest("button")) return;
      figure.focus({ preventScroll: true });
      stage.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
      event.preventDefault();
    });
    stage.addEventListener("pointermove", (event) => {
      const was = fingers.get(event.pointerId);
      if (!was) return;
      const [dx, dy] = [event.clientX - was.x, event.clientY - was.y];
      const before = fingers.size === 2 ? spread() : 0;
      Object.assign(was, { x: event.clientX, y: event.clientY });
      if (fingers.size === 2) {
        camera.magnify(spread() / (before || 1));
        camera.move(dx / 2, dy / 2);
      } else if (camera.flat || event.shiftKey || event.buttons & 6) camera.move(dx, dy);
      else camera.turn(dx * 0.008, dy * 0.008);
      refresh();
    });
    for (const name of ["pointerup", "pointercancel"]) {
      stage.addEventListener(name, (event) => fingers.delete(event.pointerId));
    }
    stage.addEventListener("contextmenu", (event) => event.preventDefault());
    stage.addEventListener("dblclick", view(camera.reset));
    stage.addEventListener("wheel", (event) => {
      // Until the picture was clicked, the wheel scrolls the page.
      if (!event.ctrlKey && !figure.contains(document.activeElement)) return;
      event.preventDefault();
      const box = stage.getBoundingClientRect();
      const [x, y] = [event.clientX - box.x - box.width / 2, event.clientY - box.y - box.height / 2];
      camera.magnify(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), x, y);
      refresh();
    }, { passive: false });

    // On paper there is no card: its picture is copied to the canvas below, which is printed as it is.
    figure.print = (printing) => {
      render();
      canvas.hidden = printing;
      stage.style.height = printing ? "auto" : "";
      stage.style.aspectRatio = printing ? `${camera.width} / ${camera.height}` : "";
      if (!printing) return;
      const context = under.getContext("2d");
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.drawImage(canvas, 0, 0);
      context.globalCompositeOperation = "destination-over";
      context.fillStyle = "#0b1220";
      context.fillRect(0, 0, under.width, under.height);
      context.globalCompositeOperation = "source-over";
    };
    describe();
    resize();
    new ResizeObserver(resize).observe(stage);
    figure.player = player;
    figure.viewer = { camera, look, tracks, render, kind: painter.kind };
    figure.dataset.state = "ready";
    figure.dataset.renderer = painter.kind;
    if (about.autoplay && !matchMedia("(prefers-reduced-motion: reduce)").matches) player.play();
  }

  function fail(figure, error) {
    figure.querySelector(".tracks-stage").replaceChildren(
      make("p", "failed", `This browser cannot show the tracks (${error.message}).`),
    );
    figure.dataset.state = "failed";
  }

  loom.whenSeen(document.querySelectorAll("figure.tracks"), "400px", start, fail);
})();
