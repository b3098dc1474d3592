"use strict";
// worldloom.transport(root, options): play, pause, step, scrub and speed for anything with frames.
//
// root is what listens to the keyboard. options: count, fps, draw(index), label(index), name (for
// screen readers), and controls, the empty element that becomes the row of buttons.
// Returns { seek, play, pause, toggle, frame, playing }.
//
// worldloom.unpack(text) undoes base64 and zlib; worldloom.whenSeen starts figures.
(() => {
  const loom = (window.worldloom ??= {});
  const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];
  const PAUSE_AT_END = 900; // milliseconds before it begins again
  const icon = (path) => `<svg viewBox="0 0 24 24" aria-hidden="true"><path d="${path}"/></svg>`;
  const ICONS = {
    play: icon("M8 5.2v13.6c0 .8.9 1.2 1.5.8l10-6.8c.6-.4.6-1.2 0-1.6l-10-6.8C8.900 4 8 4.400 8 5.200z"),
    pause: icon("M7 5h3.600v14H7zM13.400 5H17v14h-3.600z"),
    back: icon("M6 5h2.400v14H6zM19 5.600v12.800c0 .6-.7 1-1.200.6L9.500 12.600a.75.75 0 010-1.200L17.800 5c.5-.4 1.200 0 1.200.6z"),
    forth: icon("M15.600 5H18v14h-2.400zM5 5.600v12.800c0 .6.7 1 1.200.6l8.300-6.400a.75.75 0 000-1.200L6.200 5C5.700 4.600 5 5 5 5.600z"),
  };

  function button(kind, label) {
    const made = document.createElement("button");
    made.type = "button";
    made.className = kind;
    made.innerHTML = ICONS[kind];
    made.setAttribute("aria-label", label);
    made.title = label;
    return made;
  }

  loom.transport = function (root, { count, fps, draw, label, name, controls }) {
    let frame = -1, playing = false, speed = 1, last = 0, position = 0, rest = 0, visible = true;

    const play = button("play", "Play");
    const back = button("back", "Previous frame");
    const forth = button("forth", "Next frame");
    const scrub = document.createElement("input");
    Object.assign(scrub, { type: "range", min: 0, max: count - 1, step: 1, value: 0 });
    scrub.setAttribute("aria-label", `Position in ${name}`);
    const shown = document.createElement("output");
    const rate = document.createElement("select");
    rate.setAttribute("aria-label", "Speed");
    rate.title = "Speed";
    for (const factor of SPEEDS) {
      rate.add(new Option(`${factor}×`, factor, factor === 1, factor === 1));
    }
    controls.classList.add("transport");
    controls.append(play, back, forth, scrub, shown, rate);

    function show(index) {
      index = Math.min(Math.max(index, 0), count - 1);
      if (index === frame) return;
      frame = index;
      draw(frame);
      scrub.value = frame;
      const text = label(frame);
      shown.textContent = text;
      scrub.setAttribute("aria-valuetext", text);
    }
    function seek(index) {
      show(index);
      position = frame;
      rest = 0;
    }
    function set(running) {
      if (running === playing) return;
      playing = running;
      play.innerHTML = playing ? ICONS.pause : ICONS.play;
      play.setAttribute("aria-label", playing ? "Pause" : "Play");
      play.title = playing ? "Pause" : "Play";
      if (!playing) return;
      if (frame === count - 1) seek(0);
      last = performance.now();
      requestAnimationFrame(tick);
    }
    function tick(now) {
      if (!playing) return;
      const passed = Math.min(now - last, 250); // a hidden tab does not jump ahead
      last = now;
      if (visible) advance(passed);
      requestAnimationFrame(tick);
    }
    function advance(passed) {
      if (frame === count - 1) {
        rest += passed;
        if (rest >= PAUSE_AT_END) seek(0);
        return;
      }
      position = Math.min(position + (passed / 1000) * fps * speed, count - 1);
      show(Math.floor(position));
    }
    function step(by) {
      set(false);
      seek(frame + by);
    }
    function faster(by) {
      rate.selectedIndex = Math.min(Math.max(rate.selectedIndex + by, 0), SPEEDS.length - 1);
      speed = Number(rate.value);
    }

    const KEYS = {
      " ": () => set(!playing),
      k: () => set(!playing),
      ArrowLeft: (event) => step(event.shiftKey ? -10 : -1),
      ArrowRight: (event) => step(event.shiftKey ? 10 : 1),
      ArrowUp: () => faster(1),
      ArrowDown: () => faster(-1),
      Home: () => step(-count),
      End: () => step(count),
    };
    root.tabIndex = 0;
    root.addEventListener("keydown", (event) => {
      const action = KEYS[event.key];
      if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.tagName === "SELECT") return;
      if (event.key === " " && event.target.tagName === "BUTTON") return;
      event.preventDefault();
      action(event);
    });
    play.addEventListener("click", () => set(!playing));
    back.addEventListener("click", () => step(-1));
    forth.addEventListener("click", () => step(1));
    scrub.addEventListener("input", () => {
      set(false);
      seek(Number(scrub.value));
    });
    rate.addEventListener("change", () => (speed = Number(rate.value)));
    new IntersectionObserver(([entry]) => (visible = entry.isIntersecting)).observe(root);

    seek(0);
    return {
      seek,
      play: () => set(true),
      pause: () => set(false),
      toggle: () => set(!playing),
      get frame() { return frame; },
      get playing() { return playing; },
    };
  };

  // The bytes of a zlib stream in base64. Not by the browser's own DecompressionStream: that answers
  // later, and a page that is being printed does not wait.
  const BASE_LENGTH = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
  const BASE_DISTANCE = [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577];
  const MORE_LENGTH = BASE_LENGTH.map((_, i) => (i < 8 || i === 28 ? 0 : (i >> 2) - 1));
  const MORE_DISTANCE = BASE_DISTANCE.map((_, i) => (i < 4 ? 0 : (i >> 1) - 1));
  const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
  const TABLE_BITS = 15;

  // A symbol and the length of its code for every 15 bits that may come: symbol << 4 | length.
  function codes(lengths) {
    const count = new Uint16Array(16), next = new Uint16Array(16), table = new Uint16Array(1 << TABLE_BITS);
    for (const length of lengths) count[length]++;
    count[0] = 0;
    for (let bits = 1; bits < 16; bits++) next[bits] = (next[bits - 1] + count[bits - 1]) << 1;
    lengths.forEach((length, symbol) => {
      if (!length) return;
      let code = next[length]++, reversed = 0;
      for (let i = 0; i < length; i++, code >>= 1) reversed = (reversed << 1) | (code & 1);
      for (let at = reversed; at < table.length; at += 1 << length) table[at] = (symbol << 4) | length;
    });
    return table;
  }

  loom.unpack = function (text) {
    const from = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    let to = new Uint8Array(Math.max(4 * from.length, 1024)), size = 0, at = 2, hold = 0, held = 0;
    const need = (n) => {
      while (held < n) {
        hold |= (from[at++] ?? 0) << held;
        held += 8;
      }
    };
    const bits = (n) => {
      need(n);
      const value = hold & ((1 << n) - 1);
      hold >>>= n;
      held -= n;
      return value;
    };
    const symbol = (table) => {
      need(TABLE_BITS);
      const entry = table[hold & 0x7fff], length = entry & 15;
      damaged(!length);
      hold >>>= length;
      held -= length;
      return entry >> 4;
    };
    const room = (more) => {
      if (size + more <= to.length) return;
      const larger = new Uint8Array(Math.max(2 * to.length, size + more));
      larger.set(to.subarray(0, size));
      to = larger;
    };
    const damaged = (yes) => {
      if (yes) throw new Error("its data are damaged");
    };
    // Whole bytes that were looked at and not used are given back.
    const align = () => {
      at -= held >> 3;
      hold = held = 0;
    };
    damaged((from[0] & 15) !== 8 || ((from[0] << 8) | from[1]) % 31 !== 0);
    for (let last = false; !last; ) {
      last = bits(1) === 1;
      const kind = bits(2);
      if (kind === 0) {
        align();
        const length = from[at] | (from[at + 1] << 8);
        room(length);
        to.set(from.subarray(at + 4, at + 4 + length), size);
        size += length;
        at += 4 + length;
        continue;
      }
      let literals, distances;
      if (kind === 1) {
        literals = codes(Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8)));
        distances = codes(new Array(30).fill(5));
      } else {
        const [many, few, used] = [bits(5) + 257, bits(5) + 1, bits(4) + 4];
        const short = new Array(19).fill(0);
        for (let i = 0; i < used; i++) short[ORDER[i]] = bits(3);
        const table = codes(short), lengths = [];
        while (lengths.length < many + few) {
          const found = symbol(table);
          if (found < 16) lengths.push(found);
          else if (found === 16) lengths.push(...new Array(3 + bits(2)).fill(lengths.at(-1)));
          else lengths.push(...new Array(found === 17 ? 3 + bits(3) : 11 + bits(7)).fill(0));
        }
        literals = codes(lengths.slice(0, many));
        distances = codes(lengths.slice(many));
      }
      for (let found; (found = symbol(literals)) !== 256; ) {
        damaged(at > from.length + 4);
        if (found < 256) {
          if (size === to.length) room(1);
          to[size++] = found;
          continue;
        }
        const length = BASE_LENGTH[found - 257] + bits(MORE_LENGTH[found - 257]);
        const way = symbol(distances), back = BASE_DISTANCE[way] + bits(MORE_DISTANCE[way]);
        room(length);
        for (let i = 0; i < length; i++, size++) to[size] = to[size - back];
      }
    }
    align();
    let [a, b] = [1, 0];
    for (let i = 0; i < size; ) {
      for (const end = Math.min(i + 5000, size); i < end; i++) b += a += to[i];
      [a, b] = [a % 65521, b % 65521];
    }
    damaged([b >> 8, b & 255, a >> 8, a & 255].some((byte, i) => from[at + i] !== byte));
    return to.slice(0, size);
  };

  // Starts each figure when it comes near the screen, or when the page is printed. `start` and all
  // that it draws must be done when it returns. A figure may have print(printing), which is called
  // before and after.
  loom.whenSeen = function (figures, margin, start, fail) {
    const waiting = new Set(figures);
    const begin = (figure) => {
      if (!waiting.delete(figure)) return;
      observer.unobserve(figure);
      try {
        start(figure);
      } catch (error) {
        fail(figure, error);
      }
    };
    const observer = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) if (isIntersecting) begin(target);
    }, { rootMargin: margin });
    for (const figure of waiting) observer.observe(figure);
    const all = [...figures];
    const print = (printing) => {
      all.forEach(begin);
      for (const figure of all) figure.print?.(printing);
    };
    addEventListener("beforeprint", () => print(true));
    addEventListener("afterprint", () => print(false));
    if (matchMedia("print").matches) print(true);
  };
})();
