"use strict";
(() => {
  const COPY =
    '<svg viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.4" aria-hidden="true">' +
    '<rect x="5.5" y="5.5" width="8" height="8" rx="1.6"/><path d="M10.5 3.5v-1h-8v8h1"/></svg>';
  const DONE =
    '<svg viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="2" aria-hidden="true">' +
    '<path d="M3 8.5l3.2 3.2L13 5"/></svg>';

  // The clipboard interface is missing where the page is not served securely.
  function copy(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const area = document.createElement("textarea");
    area.value = text;
    area.style.position = "fixed";
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    return Promise.resolve();
  }

  for (const line of document.querySelectorAll(".command")) {
    const code = line.querySelector("code");
    const button = document.createElement("button");
    button.type = "button";
    button.innerHTML = COPY;
    button.setAttribute("aria-label", `Copy: ${code.textContent}`);
    button.title = "Copy";
    button.addEventListener("click", async () => {
      await copy(code.textContent);
      button.innerHTML = DONE;
      button.classList.add("done");
      setTimeout(() => {
        button.innerHTML = COPY;
        button.classList.remove("done");
      }, 1200);
    });
    line.classList.add("copies");
    line.append(button);
  }
})();
