"use strict";
// Steps through every figure.acbo-replay: what was set, what came of it, what was believed then.
(() => {
  function start(figure) {
    const about = JSON.parse(figure.querySelector(".about").textContent);
    const { names, target } = about;
    const words = figure.querySelector(".acbo-now");
    const all = (selector) => [...figure.querySelectorAll(selector)];
    const edges = all("[data-edge]").map((group) => ({
      group, title: group.querySelector("title"), ends: group.dataset.edge.split("-").map(Number),
    }));
    const nodes = all("[data-node]"), dots = all("[data-step]"), causes = all("[data-cause]");
    const number = (value) => value.toFixed(2).replace("-", "−");

    function draw(step) {
      const belief = about.beliefs[step];
      for (const { group, title, ends: [i, j] } of edges) {
        const p = belief[i][j];
        group.style.setProperty("--p", p);
        group.classList.toggle("unsure", p <= 0.5);
        group.style.visibility = p < 0.1 ? "hidden" : "";
        title.textContent = `${names[i]} → ${names[j]}: ${p.toFixed(2)}`;
      }
      for (const bar of causes) {
        const p = belief[Number(bar.dataset.cause)][target];
        bar.querySelector("i").style.setProperty("--share", p);
        bar.querySelector("b").textContent = p.toFixed(2);
      }
      const set = step ? about.variables[step - 1] : -1;
      for (const node of nodes) node.classList.toggle("now", Number(node.dataset.node) === set);
      for (const dot of dots) {
        dot.classList.toggle("later", Number(dot.dataset.step) > step);
        dot.classList.toggle("now", Number(dot.dataset.step) === step);
      }
      words.textContent = step
        ? `Step ${step}: ${names[set]} set to ${number(about.values[step - 1])}; ` +
          `${names[target]} was ${number(about.seen[step - 1])}. Worth ${number(about.worth[step - 1])}, ` +
          `best so far ${number(about.best[step - 1])}.`
        : "Before any intervention: what the first samples alone make one believe.";
    }

    const count = about.beliefs.length;
    figure.player = worldloom.transport(figure, {
      count, fps: about.fps, draw, label: (i) => `${i} / ${count - 1}`, name: "the optimisation",
      controls: figure.querySelector(".acbo-controls"),
    });
    figure.dataset.state = "ready";
  }
  for (const figure of document.querySelectorAll("figure.acbo-replay")) start(figure);
})();
