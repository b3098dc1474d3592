"use strict";
// worldloom.tracksPainter(canvas, tracks, wanted): draws particles, by WebGL 2 or pixel by pixel.
//
// tracks: { count, frames, dim, positions: Uint16Array [frame][particle][axis], flags: Uint8Array
// [frame][particle], and colours, a Uint8Array like flags for each name }.
// A painter has paint(camera, look); look is { frame, part, colour, map, trail, ended, size, byStatus },
// where map is 256 colours as Uint32 (little-endian RGBA).
(() => {
  const loom = (window.worldloom ??= {});
  const WAITING = 1, JUMP = 16;
  const TRAILS_OF = 20000; // particles with trails, of more

  const COMMON = `#version 300 es
    precision highp float;
    in vec3 a; in vec3 b; in float va; in float vb; in float fa; in float fb;
    uniform mat4 view; uniform vec3 scale; uniform float part; uniform sampler2D map;
    uniform float ended; uniform float byStatus;
    out vec4 colour;
    vec3 world(vec3 p) { return (p - 0.5) * scale; }
    vec4 paint(float value) { return texture(map, vec2((value * 255.0 + 0.5) / 256.0, 0.5)); }
  `;
  const POINTS = COMMON + `
    uniform float size;
    void main() {
      float before = mod(fa, 16.0), jump = step(15.5, fb);
      float m = jump > 0.5 ? 0.0 : part;
      vec4 at = view * vec4(world(mix(a, b, m)), 1.0);
      bool waiting = before == 1.0, over = before > 1.5;
      colour = paint(mix(va, vb, byStatus > 0.5 ? 0.0 : m));
      if (over && byStatus < 0.5) colour = vec4(0.55, 0.6, 0.68, 1.0);
      if (over) colour.a = 0.55;
      if (waiting || (over && ended < 0.5)) at = vec4(2.0, 2.0, 2.0, 1.0);
      float shade = 1.0 - 0.3 * clamp(at.z / at.w, 0.0, 1.0);
      colour.rgb *= shade;
      gl_Position = at;
      gl_PointSize = max(size / at.w * (over ? 0.7 : 1.0), 1.0);
    }`;
  const DOT = `#version 300 es
    precision mediump float;
    in vec4 colour; out vec4 result;
    void main() {
      float r = length(gl_PointCoord - 0.5) * 2.0;
      float alpha = colour.a * (1.0 - smoothstep(0.7, 1.0, r));
      if (alpha < 0.05) discard;
      float lit = 1.08 - 0.25 * r * r;
      result = vec4(colour.rgb * lit * alpha, alpha);
    }`;
  const LINES = COMMON + `
    uniform float fade; uniform float head;
    void main() {
      float before = mod(fa, 16.0);
      bool cut = before > 0.5 || fb > 15.5;
      vec3 end = head > 0.5 ? mix(a, b, part) : b;
      vec4 at = view * vec4(world(gl_VertexID == 0 ? a : end), 1.0);
      if (cut) at = vec4(2.0, 2.0, 2.0, 1.0);
      colour = paint(gl_VertexID == 0 ? va : vb);
      colour.a = fade;
      gl_Position = at;
    }`;
  const FLAT = `#version 300 es
    precision mediump float;
    in vec4 colour; out vec4 result;
    void main() { result = vec4(colour.rgb * colour.a, colour.a); }`;

  function program(gl, vertex, fragment) {
    const made = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(made, shader);
    }
    ["a", "b", "va", "vb", "fa", "fb"].forEach((name, i) => gl.bindAttribLocation(made, i, name));
    gl.linkProgram(made);
    if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made));
    const place = {};
    const names = ["view", "scale", "part", "map", "ended", "byStatus", "size", "fade", "head"];
    for (const name of names) place[name] = gl.getUniformLocation(made, name);
    return { made, place };
  }

  // WebGL without a graphics card is slower than painting pixel by pixel.
  function hasCard() {
    const gl = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: true });
    if (!gl) return false;
    const more = gl.getExtension("WEBGL_debug_renderer_info");
    const name = gl.getParameter(more ? more.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
    gl.getExtension("WEBGL_lose_context")?.loseContext();
    return !/swiftshader|llvmpipe|software|basic render/i.test(name);
  }

  function webgl(canvas, tracks) {
    const { count, frames, dim } = tracks;
    if (tracks.wanted !== "webgl" && !hasCard()) return null;
    const gl = canvas.getContext("webgl2", { antialias: true });
    if (!gl) return null;
    const dots = program(gl, POINTS, DOT), lines = program(gl, LINES, FLAT);
    const buffer = (data) => {
      const made = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, made);
      gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
      return made;
    };
    const places = buffer(tracks.positions), flags = buffer(tracks.flags);
    const values = Object.fromEntries(Object.entries(tracks.colours).map(([n, d]) => [n, buffer(d)]));
    const texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    for (const what of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, what, gl.NEAREST);
    for (const what of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, what, gl.CLAMP_TO_EDGE);
    for (let i = 0; i < 6; i++) gl.enableVertexAttribArray(i);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    let shown = null;

    function bind(colour, from, to, divisor) {
      const point = (i, from_, frame, size, type, normal, width) => {
        gl.bindBuffer(gl.ARRAY_BUFFER, from_);
        gl.vertexAttribPointer(i, size, type, normal, 0, frame * count * width);
        gl.vertexAttribDivisor(i, divisor);
      };
      point(0, places, from, dim, gl.UNSIGNED_SHORT, true, 2 * dim);
      point(1, places, to, dim, gl.UNSIGNED_SHORT, true, 2 * dim);
      point(2, values[colour], from, 1, gl.UNSIGNED_BYTE, true, 1);
      point(3, values[colour], to, 1, gl.UNSIGNED_BYTE, true, 1);
      point(4, flags, from, 1, gl.UNSIGNED_BYTE, false, 1);
      point(5, flags, to, 1, gl.UNSIGNED_BYTE, false, 1);
    }
    function use({ made, place }, camera, look) {
      gl.useProgram(made);
      const m = camera.matrix();
      gl.uniformMatrix4fv(place.view, false, [0, 1, 2, 3].flatMap((c) => m.map((row) => row[c])));
      gl.uniform3fv(place.scale, camera.scale);
      gl.uniform1f(place.part, look.part);
      gl.uniform1f(place.ended, look.ended ? 1 : 0);
      gl.uniform1f(place.byStatus, look.byStatus ? 1 : 0);
    }
    function paint(camera, look) {
      gl.viewport(0, 0, canvas.width, canvas.height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
      if (shown !== look.map) {
        const bytes = new Uint8Array(look.map.buffer);
        gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
        shown = look.map;
      }
      const next = Math.min(look.frame + 1, frames - 1);
      if (look.trail) {
        gl.disable(gl.DEPTH_TEST);
        use(lines, camera, look);
        for (let k = Math.min(look.trail, look.frame); k >= 0; k--) {
          if (k === 0 && next === look.frame) break;
          bind(look.colour, look.frame - k, k ? look.frame - k + 1 : next, 1);
          gl.uniform1f(lines.place.head, k ? 0 : 1);
          gl.uniform1f(lines.place.fade, 0.5 * Math.max(0, 1 - (k + look.part - 0.5) / (look.trail + 0.5)));
          gl.drawArraysInstanced(gl.LINES, 0, 2, Math.min(count, TRAILS_OF));
        }
      }
      gl.enable(gl.DEPTH_TEST);
      use(dots, camera, look);
      gl.uniform1f(dots.place.size, look.size * (canvas.width / camera.width));
      bind(look.colour, look.frame, next, 0);
      gl.drawArrays(gl.POINTS, 0, count);
    }
    return { paint, kind: "webgl" };
  }

  function pixels(canvas, tracks) {
    const { count, frames, dim, positions, flags } = tracks;
    const context = canvas.getContext("2d");
    const depths = { array: new Float32Array(0) };
    let image = null, words = null;

    function paint(camera, look) {
      const [width, height] = [canvas.width, canvas.height];
      if (!image || image.width !== width || image.height !== height) {
        image = context.createImageData(width, height);
        words = new Uint32Array(image.data.buffer);
        depths.array = new Float32Array(words.length);
      }
      words.fill(0);
      const depth = depths.array.fill(Infinity);
      const next = Math.min(look.frame + 1, frames - 1);
      const from = look.frame * count, to = next * count;
      const m = camera.matrix(), [sx, sy, sz] = camera.scale.map((s) => s / 65535);
      const [ox, oy, oz] = camera.scale.map((s) => -s / 2);
      const ratio = width / camera.width;
      const value = tracks.colours[look.colour];
      const grey = 0xff000000 | (0x78 << 16) | (0x66 << 8) | 0x5a;
      for (let i = 0; i < count; i++) {
        const status = flags[from + i] & 15;
        if (status === WAITING || (status > WAITING && !look.ended)) continue;
        const part = flags[to + i] & JUMP ? 0 : look.part;
        const p = (from + i) * dim, q = (to + i) * dim;
        const x = (positions[p] + (positions[q] - positions[p]) * part) * sx + ox;
        const y = (positions[p + 1] + (positions[q + 1] - positions[p + 1]) * part) * sy + oy;
        const z = dim === 2 ? 0 : (positions[p + 2] + (positions[q + 2] - positions[p + 2]) * part) * sz + oz;
        const w = m[3][0] * x + m[3][1] * y + m[3][2] * z + m[3][3];
        const cx = ((m[0][0] * x + m[0][1] * y + m[0][2] * z + m[0][3]) / w + 1) * 0.5 * width;
        const cy = (1 - (m[1][0] * x + m[1][1] * y + m[1][2] * z + m[1][3]) / w) * 0.5 * height;
        const level = look.byStatus ? value[from + i] : Math.round(value[from + i] + (value[to + i] - value[from + i]) * part);
        const colour = status > WAITING && !look.byStatus ? grey : look.map[level];
        const r = Math.max(((look.size * ratio) / w) * (status > WAITING ? 0.35 : 0.5), 0.5), rr = r * r;
        const [left, right] = [Math.max(Math.ceil(cx - r - 0.5), 0), Math.min(Math.floor(cx + r - 0.5), width - 1)];
        const [top, bottom] = [Math.max(Math.ceil(cy - r - 0.5), 0), Math.min(Math.floor(cy + r - 0.5), height - 1)];
        for (let v = top; v <= bottom; v++) {
          for (let u = left; u <= right; u++) {
            const at = v * width + u;
            if (w >= depth[at] || (r > 1 && (u + 0.5 - cx) ** 2 + (v + 0.5 - cy) ** 2 > rr)) continue;
            depth[at] = w;
            words[at] = colour;
          }
        }
      }
      context.putImageData(image, 0, 0);
      if (look.trail) trails(camera, look, next, ratio);
    }

    function trails(camera, look, next, ratio) {
      const project = camera.projector();
      const place = (frame, i) => {
        const p = (frame * count + i) * dim;
        return project(positions[p] / 65535, positions[p + 1] / 65535, dim === 2 ? 0.5 : positions[p + 2] / 65535);
      };
      context.globalCompositeOperation = "destination-over";
      context.lineWidth = ratio;
      for (let k = Math.min(look.trail, look.frame); k >= 1; k--) {
        context.beginPath();
        const [from, to] = [look.frame - k, look.frame - k + 1];
        for (let i = 0; i < Math.min(count, 1500); i++) {
          if (flags[from * count + i] & 15 || flags[to * count + i] & JUMP) continue;
          const [a, b] = [place(from, i), place(to, i)];
          context.moveTo(a[0] * ratio, a[1] * ratio);
          context.lineTo(b[0] * ratio, b[1] * ratio);
        }
        context.strokeStyle = `rgba(150,180,225,${0.45 * (1 - k / (look.trail + 1))})`;
        context.stroke();
      }
      context.globalCompositeOperation = "source-over";
    }
    return { paint, kind: "canvas" };
  }

  loom.tracksPainter = (canvas, tracks) =>
    (tracks.wanted === "canvas" ? null : webgl(canvas, tracks)) ?? pixels(canvas, tracks);
})();
