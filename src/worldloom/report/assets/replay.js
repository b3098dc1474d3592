"use strict";
// Turns every figure.replay into a player when it comes near the screen.
(() => {
  function undoDifferences(frames, size) {
    for (let i = size; i < frames.length; i++) frames[i] += frames[i - size];
  }

  // One 32-bit word a pixel, in the byte order that ImageData has on every machine with a browser.
  const word = (r, g, b) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

  function painter(about, frames, context) {
    const image = context.createImageData(about.width, about.height);
    const words = new Uint32Array(image.data.buffer);
    const size = words.length;
    if (about.palette) {
      const colours = Uint32Array.from(about.palette, (colour) => word(...colour));
      return (index) => {
        const start = index * size;
        for (let i = 0; i < size; i++) words[i] = colours[frames[start + i]];
        context.putImageData(image, 0, 0);
      };
    }
    return (index) => {
      for (let i = 0, at = index * size * 3; i < size; i++, at += 3) {
        words[i] = word(frames[at], frames[at + 1], frames[at + 2]);
      }
      context.putImageData(image, 0, 0);
    };
  }

  const LARGER =
    '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M4 4h6v2.400H6.400V10H4zM14 4h6v6h-2.400V6.400' +
    'H14zM4 14h2.400v3.600H10V20H4zM17.600 14H20v6h-6v-2.400h3.600z"/></svg>';

  function addFullScreen(figure, controls) {
    if (!document.fullscreenEnabled) return;
    const button = document.createElement("button");
    button.type = "button";
    button.innerHTML = LARGER;
    button.setAttribute("aria-label", "Full screen");
    button.title = "Full screen";
    button.addEventListener("click", () => {
      if (document.fullscreenElement) document.exitFullscreen();
      else figure.requestFullscreen();
    });
    controls.append(button);
  }

  function start(figure) {
    const about = JSON.parse(figure.querySelector(".about").textContent);
    const data = figure.querySelector(".frames");
    const frames = worldloom.unpack(data.textContent);
    data.remove();
    undoDifferences(frames, about.width * about.height * (about.palette ? 1 : 3));

    const still = figure.querySelector("img");
    const canvas = document.createElement("canvas");
    canvas.width = about.width;
    canvas.height = about.height;
    canvas.className = still.className;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", still.alt);
    const draw = painter(about, frames, canvas.getContext("2d"));

    const controls = document.createElement("div");
    figure.querySelector(".stage").after(controls);
    const player = worldloom.transport(figure, {
      count: about.count,
      fps: about.fps,
      draw,
      controls,
      name: still.alt,
      label: (index) => about.labels ? about.labels[index] : `${index + 1} / ${about.count}`,
    });
    addFullScreen(figure, controls);
    canvas.addEventListener("click", () => player.toggle());
    still.replaceWith(canvas);
    figure.player = player;
    figure.dataset.state = "ready";
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (about.autoplay && !calm) player.play();
  }

  function fail(figure, error) {
    const words = document.createElement("p");
    words.className = "failed";
    words.textContent = `This browser cannot play the replay (${error.message}).`;
    figure.querySelector(".stage").after(words);
    figure.dataset.state = "failed";
  }

  worldloom.whenSeen(document.querySelectorAll("figure.replay"), "600px", start, fail);
})();
