"use strict";
// Turns every figure.arc-replays into a browser of episodes: a list to search, a player, curves.
(() => {
  const ROW = 52; // pixels, as in the style sheet
  const NONE = 15; // a cell that does not exist
  const KEPT = 12; // episodes that stay unpacked
  const SORTS = {
    "in order": (e) => (a, b) => a - b,
    "best reward": (e) => (a, b) => e.reward[b] - e.reward[a],
    "most similar": (e) => (a, b) => e.similarity[b] - e.similarity[a],
    "shortest": (e) => (a, b) => e.length[a] - e.length[b],
    "by task": (e) => (a, b) => e.task[a] - e.task[b] || a - b,
  };

  function make(tag, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function draw(tag, attributes) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  }

  // Four planes of bytes, lowest first, as numbers.
  function floats(bytes, at, count) {
    const joined = new DataView(new ArrayBuffer(4));
    return Float32Array.from({ length: count }, (_, i) => {
      for (let plane = 0; plane < 4; plane++) joined.setUint8(plane, bytes[at + plane * count + i]);
      return joined.getFloat32(0, true);
    });
  }

  function readEpisode(bytes, count, rows, columns) {
    let at = 0;
    const take = (size) => bytes.subarray(at, (at += size));
    const operations = take(count), pairs = take(count);
    const rewards = floats(bytes, at, count);
    at += 4 * count;
    const similarities = floats(bytes, at, count);
    at += 4 * count;
    const size = rows * columns;
    const grids = take(count * size);
    for (let i = size; i < grids.length; i++) grids[i] += grids[i - size];
    return { count, rows, columns, operations, pairs, rewards, similarities, grids, selections: take(count * Math.ceil(size / 8)) };
  }

  function readTask(bytes) {
    const pairs = [];
    let at = 0;
    const grid = () => {
      const rows = bytes[at++], columns = bytes[at++];
      return { rows, columns, cells: bytes.subarray(at, (at += rows * columns)) };
    };
    while (at < bytes.length) pairs.push({ input: grid(), output: grid() });
    return pairs;
  }

  // ---------------------------------------------------------------- grids on canvases

  function fit(canvas, rows, columns, width, height, most) {
    const ratio = window.devicePixelRatio || 1;
    const cell = Math.max(2, Math.floor(Math.min(width / columns, height / rows, most) * ratio));
    canvas.width = cell * columns + 1;
    canvas.height = cell * rows + 1;
    canvas.style.width = `${canvas.width / ratio}px`;
    canvas.style.height = `${canvas.height / ratio}px`;
    return cell;
  }

  function paint(context, cell, rows, columns, cells, palette) {
    const { canvas } = context;
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.fillStyle = "rgb(127 127 127 / .09)"; // room for grids of other sizes
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.strokeStyle = "rgb(127 127 127 / .42)";
    context.lineWidth = 1;
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const colour = cells[row * columns + column];
        if (colour === NONE) continue;
        context.fillStyle = palette[colour];
        context.fillRect(column * cell, row * cell, cell, cell);
        if (cell > 3) context.strokeRect(column * cell + 0.5, row * cell + 0.5, cell, cell);
      }
    }
  }

  function outline(context, cell, rows, columns, isIn) {
    const edges = new Path2D();
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        if (!isIn(row, column)) continue;
        const x = column * cell, y = row * cell;
        const line = (x1, y1, x2, y2) => { edges.moveTo(x1, y1); edges.lineTo(x2, y2); };
        if (!isIn(row - 1, column)) line(x, y, x + cell, y);
        if (!isIn(row + 1, column)) line(x, y + cell, x + cell, y + cell);
        if (!isIn(row, column - 1)) line(x, y, x, y + cell);
        if (!isIn(row, column + 1)) line(x + cell, y, x + cell, y + cell);
      }
    }
    context.lineCap = "square";
    for (const [colour, width] of [["#10141b", 0.22], ["#ffffff", 0.11]]) {
      context.strokeStyle = colour;
      context.lineWidth = Math.max(2, cell * width);
      context.stroke(edges);
    }
  }

  // ---------------------------------------------------------------- curves

  function curve(title, small) {
    const box = make("div", small ? "arc-curve small" : "arc-curve");
    const head = make("div");
    const value = make("span");
    head.append(make("b", "", title), value);
    const svg = draw("svg", { viewBox: "0 0 1000 100", preserveAspectRatio: "none", "aria-hidden": "true" });
    const now = draw("line", { class: "now", y1: 0, y2: 100 });
    box.append(head, svg);
    return { box, svg, now, value };
  }

  const place = (index, count) => 10 + 980 * (count > 1 ? index / (count - 1) : 0.5);

  function drawSimilarity(chart, values) {
    const points = Array.from(values, (v, i) => `${place(i, values.length).toFixed(1)},${(96 - 92 * v).toFixed(1)}`);
    chart.svg.append(
      draw("polygon", { class: "area", points: `10,100 ${points.join(" ")} 990,100` }),
      draw("polyline", { class: "line", points: points.join(" ") }),
      chart.now,
    );
  }

  function drawRewards(chart, values) {
    const top = Math.max(0.05, ...values), bottom = Math.min(-0.05, ...values);
    // Square roots, so that a penalty is seen beside a bonus a thousand times as large.
    const scale = (v) => Math.sign(v) * Math.sqrt(Math.abs(v));
    const y = (v) => 4 + (92 * (scale(top) - scale(v))) / (scale(top) - scale(bottom));
    const width = Math.max(2, Math.min(14, 700 / values.length));
    chart.svg.append(draw("line", { class: "zero", x1: 0, x2: 1000, y1: y(0), y2: y(0) }));
    values.forEach((v, i) => {
      if (v === 0) return;
      chart.svg.append(draw("rect", {
        class: v < 0 ? "bar down" : "bar", width, x: place(i, values.length) - width / 2,
        y: Math.min(y(v), y(0)), height: Math.abs(y(v) - y(0)),
      }));
    });
    chart.svg.append(chart.now);
  }

  function scrubbing(svg, seek) {
    const at = (event) => {
      const box = svg.getBoundingClientRect();
      const share = ((1000 * (event.clientX - box.left)) / box.width - 10) / 980;
      seek(Math.min(Math.max(share, 0), 1));
    };
    svg.addEventListener("pointerdown", (event) => { svg.setPointerCapture(event.pointerId); at(event); });
    svg.addEventListener("pointermove", (event) => { if (svg.hasPointerCapture(event.pointerId)) at(event); });
  }

  // ---------------------------------------------------------------- one episode

  function pairName(pair) {
    return pair & 128 ? `test ${(pair & 127) + 1}` : `demo ${pair + 1}`;
  }

  function taskPanel(task, pairs, palette) {
    const panel = make("div", "arc-task");
    panel.append(make("h4", "", task.id), make("p", "", `${task.demos} demos, ${task.tests} test${task.tests === 1 ? "" : "s"}`));
    const list = make("div", "arc-pairs");
    const boxes = pairs.map((pair, index) => {
      const test = index >= task.demos;
      const box = make("div", "arc-pair");
      const grids = make("div");
      for (const [place, grid] of [[0, pair.input], [1, pair.output]]) {
        if (place) grids.append(make("i", "", "→"));
        if (!grid.rows) { grids.append(make("i", "", "hidden")); continue; }
        const canvas = make("canvas");
        const cell = fit(canvas, grid.rows, grid.columns, 68, 84, 24);
        paint(canvas.getContext("2d"), cell, grid.rows, grid.columns, grid.cells, palette);
        grids.append(canvas);
      }
      box.append(make("span", "", pairName(test ? 128 | (index - task.demos) : index)), grids);
      return box;
    });
    list.append(...boxes);
    panel.append(list);
    const mark = (pair) => {
      const index = pair & 128 ? task.demos + (pair & 127) : pair;
      boxes.forEach((box, i) => box.classList.toggle("here", i === index));
      return pairs[index];
    };
    return { panel, mark };
  }

  function showEpisode(browser, index, episode, pairs) {
    const { about, figure } = browser;
    const table = about.episodes;
    const task = about.tasks[table.task[index]];
    const view = make("div", "arc-view arc-card");
    view.setAttribute("role", "group");
    view.setAttribute("aria-label", `Replay of episode ${table.number[index]}`);
    const { panel, mark } = taskPanel(task, pairs, about.palette);

    const board = make("div", "arc-board");
    const head = make("div", "arc-head");
    const operation = make("span", "arc-operation");
    const where = make("span", "arc-where");
    const outcome = make("span", "arc-outcome", table.outcome[index]);
    outcome.dataset.outcome = table.outcome[index];
    const box = make("label", "arc-mark");
    const tick = make("input");
    tick.type = "checkbox";
    tick.checked = browser.marking;
    tick.addEventListener("change", () => { browser.marking = tick.checked; paintBoard(); });
    box.append(tick, "Mark errors");
    head.append(operation, where, box, outcome);
    const stage = make("div", "arc-stage");
    const canvas = make("canvas");
    canvas.setAttribute("role", "img");
    stage.append(canvas);
    const controls = make("div");
    const similarity = curve("Similarity"), reward = curve("Reward", true);
    drawSimilarity(similarity, episode.similarities);
    drawRewards(reward, episode.rewards);
    const curves = make("div", "arc-curves");
    curves.append(similarity.box, reward.box);
    board.append(head, stage, controls, curves);
    view.append(panel, board);
    figure.querySelector(".arc-view").replaceWith(view);

    const context = canvas.getContext("2d");
    const size = episode.rows * episode.columns;
    const total = [];
    episode.rewards.reduce((sum, r, i) => (total[i] = sum + r), 0);
    let cell = 8, frame = 0, target = null;

    const selected = (row, column) => {
      if (row < 0 || column < 0 || row >= episode.rows || column >= episode.columns) return false;
      const place = row * episode.columns + column;
      return (episode.selections[frame * Math.ceil(size / 8) + (place >> 3)] >> (7 - (place & 7))) & 1;
    };
    function paintBoard() {
      const cells = episode.grids.subarray(frame * size, (frame + 1) * size);
      paint(context, cell, episode.rows, episode.columns, cells, about.palette);
      if (browser.marking && target && target.rows) dots(cells);
      if (frame) outline(context, cell, episode.rows, episode.columns, selected);
    }
    function dots(cells) {
      for (let row = 0; row < episode.rows; row++) {
        for (let column = 0; column < episode.columns; column++) {
          const colour = cells[row * episode.columns + column];
          if (colour === NONE) continue;
          const there = row < target.rows && column < target.columns;
          if (there && target.cells[row * target.columns + column] === colour) continue;
          context.fillStyle = about.light[colour] ? "#10141b" : "#ffffff";
          context.beginPath();
          context.arc((column + 0.5) * cell, (row + 0.5) * cell, cell / 7, 0, 2 * Math.PI);
          context.fill();
        }
      }
    }
    function describe() {
      const id = episode.operations[frame];
      const known = about.operations[id];
      const name = frame === 0 ? "start" : known ? known.replaceAll("_", " ") : "no such operation";
      operation.replaceChildren(name.replace(/ \d$/, ""));
      const colour = /fill \d$/.test(name) ? Number(name.at(-1)) : null;
      if (colour !== null) {
        const swatch = make("span", "arc-swatch");
        swatch.style.background = about.palette[colour];
        swatch.title = about.colours[colour];
        operation.append(swatch);
      }
      const pair = episode.pairs[frame];
      where.textContent = `on ${pairName(pair)}`;
      target = mark(pair).output;
      canvas.setAttribute("aria-label", `Working grid after step ${frame}: ${name}`);
    }
    function show(to) {
      frame = to;
      describe();
      paintBoard();
      const x = place(frame, episode.count);
      for (const chart of [similarity, reward]) {
        chart.now.setAttribute("x1", x);
        chart.now.setAttribute("x2", x);
      }
      similarity.value.textContent = `${(100 * episode.similarities[frame]).toFixed(0)} %`;
      reward.value.textContent = `${signed(episode.rewards[frame])}, in all ${signed(total[frame])}`;
    }

    const player = worldloom.transport(view, {
      count: episode.count,
      fps: about.fps,
      draw: show,
      label: (i) => `${i} / ${episode.count - 1}`,
      name: `episode ${table.number[index]}`,
      controls,
    });
    const seek = (share) => { player.pause(); player.seek(Math.round(share * (episode.count - 1))); };
    scrubbing(similarity.svg, seek);
    scrubbing(reward.svg, seek);
    canvas.addEventListener("click", () => player.toggle());
    new ResizeObserver(() => {
      if (!stage.clientWidth) return;
      cell = fit(canvas, episode.rows, episode.columns, stage.clientWidth, stage.clientHeight, 76);
      paintBoard();
    }).observe(stage);
    return player;
  }

  const signed = (value) => `${value < -0.0005 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;

  // ---------------------------------------------------------------- the list

  function listOf(browser) {
    const { about } = browser;
    const table = about.episodes;
    const all = table.task.map((_, i) => i);
    const pick = make("div", "arc-pick arc-card");
    const search = make("input");
    Object.assign(search, { type: "search", placeholder: "Task or outcome" });
    search.setAttribute("aria-label", "Search for a task or outcome");
    const chips = make("div", "arc-chips");
    chips.setAttribute("role", "group");
    chips.setAttribute("aria-label", "Outcome");
    const sort = make("select");
    for (const name of Object.keys(SORTS)) sort.add(new Option(name));
    const line = make("label", "arc-sort");
    const found = make("span");
    found.setAttribute("aria-live", "polite");
    line.append(sort, found);
    const list = make("div", "arc-list");
    list.tabIndex = 0;
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Episodes");
    const sheet = make("div");
    list.append(sheet);
    pick.append(search, chips, line, list);

    let outcome = "", shown = all;
    const counts = {};
    for (const name of table.outcome) counts[name] = (counts[name] ?? 0) + 1;
    const names = ["", ...about.outcomes.filter((name) => counts[name])];
    const buttons = names.map((name) => {
      const button = make("button", "", `${name || "all"} `);
      button.type = "button";
      button.append(make("small", "", (name ? counts[name] : all.length).toLocaleString("en")));
      button.dataset.outcome = name;
      button.addEventListener("click", () => { outcome = name; filter(); });
      return button;
    });
    chips.append(...buttons);

    function filter() {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const text = (i) => `${about.tasks[table.task[i]].id} ${table.outcome[i]} ${pairName(table.pair[i]).replace(" ", "")} #${table.number[i]}`.toLowerCase();
      shown = all.filter((i) => (!outcome || table.outcome[i] === outcome) && words.every((word) => text(i).includes(word)));
      shown.sort(SORTS[sort.value](table));
      for (const button of buttons) button.setAttribute("aria-pressed", button.dataset.outcome === outcome);
      const rest = about.recorded > table.number.length;
      const whole = rest ? ` of ${about.recorded.toLocaleString("en")} recorded` : "";
      found.textContent =
        `${shown.length.toLocaleString("en")} episode${shown.length === 1 ? "" : "s"}${whole}`;
      list.scrollTop = 0;
      render();
    }
    function render() {
      const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 4);
      const last = Math.min(shown.length, first + Math.ceil((list.clientHeight || 600) / ROW) + 8);
      sheet.style.height = `${shown.length * ROW}px`;
      const rows = [];
      for (let at = first; at < last; at++) rows.push(row(shown[at], at));
      if (!shown.length) rows.push(make("p", "arc-none", "No episode is like that."));
      sheet.replaceChildren(...rows);
      list.setAttribute("aria-activedescendant", `${browser.name}-${browser.index}`);
    }
    function row(i, at) {
      const element = make("div", "arc-row");
      element.id = `${browser.name}-${i}`;
      element.style.top = `${at * ROW}px`;
      element.dataset.index = i;
      element.setAttribute("role", "option");
      element.setAttribute("aria-selected", i === browser.index);
      element.setAttribute("aria-setsize", shown.length);
      element.setAttribute("aria-posinset", at + 1);
      const badge = make("span", "arc-outcome", table.outcome[i]);
      badge.dataset.outcome = table.outcome[i];
      const length = table.length[i];
      element.append(
        make("strong", "", about.tasks[table.task[i]].id), badge,
        make("span", "", `#${table.number[i]} · ${pairName(table.pair[i])} · ${length} step${length === 1 ? "" : "s"}`),
        make("span", "number", signed(table.reward[i])),
      );
      return element;
    }
    function move(by) {
      if (!shown.length) return;
      const at = shown.indexOf(browser.index);
      const to = Math.min(Math.max(at < 0 ? 0 : at + by, 0), shown.length - 1);
      browser.pick(shown[to]);
      const top = to * ROW;
      if (top < list.scrollTop) list.scrollTop = top;
      else if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
    }

    let waiting = false;
    list.addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; render(); });
    }, { passive: true });
    list.addEventListener("click", (event) => {
      const chosen = event.target.closest(".arc-row");
      if (chosen) browser.pick(Number(chosen.dataset.index));
    });
    const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8, Home: -1e9, End: 1e9 };
    list.addEventListener("keydown", (event) => {
      if (!(event.key in STEPS)) return;
      event.preventDefault();
      move(STEPS[event.key]);
    });
    search.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown") return;
      event.preventDefault();
      list.focus();
      move(0);
    });
    search.addEventListener("input", filter);
    sort.addEventListener("change", filter);
    return { pick, render, filter, move, search };
  }

  // ---------------------------------------------------------------- all together

  let figures = 0;
  function start(figure) {
    const about = JSON.parse(figure.querySelector(".about").textContent);
    const lines = (name) => figure.querySelector(name).textContent.split("\n");
    const episodes = lines(".episodes"), tasks = lines(".tasks");
    const memory = new Map();
    const browser = { about, figure, index: -1, marking: false, player: null, name: `arc${figures++}` };
    const table = about.episodes;

    function load(index) {
      if (!memory.has(index)) {
        const [episode, task] = [episodes[index], tasks[table.task[index]]].map(worldloom.unpack);
        memory.set(index, [readEpisode(episode, table.length[index] + 1, table.rows[index], table.columns[index]), readTask(task)]);
        if (memory.size > KEPT) memory.delete(memory.keys().next().value);
      }
      return memory.get(index);
    }
    const wait = make("div", "arc-view arc-card");
    const list = listOf(browser);
    browser.pick = (index) => {
      if (index === browser.index) return;
      browser.index = index;
      list.render();
      const loaded = load(index);
      const playing = browser.player?.playing ?? false;
      const speed = figure.querySelector(".transport select")?.value;
      const focused = figure.querySelector(".arc-view").contains(document.activeElement);
      browser.player?.pause();
      browser.player = showEpisode(browser, index, ...loaded);
      figure.player = browser.player;
      const view = figure.querySelector(".arc-view");
      const rate = view.querySelector(".transport select");
      if (speed) { rate.value = speed; rate.dispatchEvent(new Event("change")); }
      if (focused) view.focus({ preventScroll: true });
      if (playing) browser.player.play();
      figure.dataset.episode = table.number[index];
      figure.dataset.state = "ready";
    };
    figure.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (/^(INPUT|SELECT)$/.test(event.target.tagName) && event.target.type !== "range") return;
      if (event.key === "n") list.move(1);
      else if (event.key === "p") list.move(-1);
      else if (event.key === "/") { event.preventDefault(); list.search.focus(); }
    });
    figure.querySelector(".arc-wait").replaceWith(wait, list.pick);
    list.filter();
    browser.pick(about.first);
  }

  function fail(figure, error) {
    const words = make("p", "arc-wait", `This browser cannot play the episodes (${error.message}).`);
    figure.querySelector(".arc-view, .arc-wait").replaceWith(words);
    figure.dataset.state = "failed";
  }

  worldloom.whenSeen(document.querySelectorAll("figure.arc-replays"), "600px", start, fail);
})();
