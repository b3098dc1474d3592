"use strict";
// worldloom.transport(root, options): play, pause, step, scrub and speed for anything with frames.
//
// root is what listens to the keyboard. options: count, fps, draw(index), label(index), name (for
// screen readers), and controls, the empty element that becomes the row of buttons.
// Returns { seek, play, pause, toggle, frame, playing }.
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
})();
