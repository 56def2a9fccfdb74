"use strict";
(() => {
  const page = JSON.parse(document.getElementById("page-data").textContent);
  const unpacked = new Map();
  const views = new Map();

  function rows(index) {
    if (!unpacked.has(index)) {
      const { fields, rows: packed } = page.data[index];
      unpacked.set(index, packed.map((row) => Object.fromEntries(fields.map((f, i) => [f, row[i]]))));
    }
    return unpacked.get(index);
  }

  function draw(box) {
    if (box.dataset.drawn) return;
    box.dataset.drawn = "yes";
    const chart = page.charts[Number(box.dataset.chart)];
    const named = Object.entries(chart.data).map(([name, index]) => [name, rows(index)]);
    const spec = structuredClone(page.specs[chart.spec]);
    spec.datasets = { ...spec.datasets, ...Object.fromEntries(named) };
    // Names of groups and classes may take half the width; where that is little, n is left out.
    const width = box.clientWidth;
    const axis = { ...page.config.axis, labelLimit: Math.max(110, 0.5 * width) };
    const layers = spec.layer ?? spec.spec.layer;
    const names = new Set(layers.map((layer) => layer.encoding.y?.axis).filter(Boolean));
    if (width < 420) for (const name of names) name.labelExpr ??= "split(datum.label, ' (n = ')[0]";
    if (width < 420) for (const { encoding } of layers) if (encoding.text) encoding.text.field = "short";
    if (spec.facet) setPanels(spec, width);
    const embed = (columns) => vegaEmbed(box, fitted(spec, rows(chart.data.rows), width, axis.labelLimit), {
      mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false, formatLocale: NUMBERS,
      config: { ...page.config, axis, legend: { ...page.config.legend, columns } }, tooltip: { disableDefaultStyle: true },
    }).then((drawn) => {
      // The element around it has the chart in words.
      box.querySelector("svg").setAttribute("aria-hidden", "true");
      views.set(box.dataset.chart, drawn.view);
      // Panels are as wide as the labels of their rows leave room for.
      const rest = spec.facet ? width - box.querySelector("svg").getAttribute("width") : 0;
      if (Math.abs(rest) > 4 && spec.spec.width + rest / spec.columns > 80 && !box.dataset.fitted) {
        box.dataset.fitted = "yes";
        spec.spec.width += Math.floor(rest / spec.columns);
        drawn.finalize();
        return embed(columns);
      }
      // A legend may be wider than the plot below it: fewer entries a line, until it fits.
      if (columns === 1 || !runsOut(box)) return drawn;
      drawn.finalize();
      return embed(columns - 1);
    });
    embed(page.config.legend.columns).catch((error) => { box.textContent = "This chart could not be drawn: " + error.message; });
  }

  const NUMBERS = { decimal: ".", thousands: "\u202f", grouping: [3], currency: ["", ""], percent: "\u00a0%" };
  const ENDS = ["value", "low", "high", "expected", "chance_low", "chance_high", "limit_low", "limit_high"];
  const ruler = document.createElement("canvas").getContext("2d");
  ruler.font = "600 12px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
  const lengthOf = (text) => ruler.measureText(text).width;

  // The numbers of the axis leave room for the texts beside marks, each on its side.
  function fitted(spec, marks, width, labelLimit) {
    if (!spec.usermeta?.names) return spec;
    const layers = spec.layer ?? spec.spec.layer;
    const field = layers.find(({ encoding }) => encoding.text).encoding.text.field;
    const labels = Math.min(labelLimit, Math.max(...marks.map(({ label }) => lengthOf(label))));
    const plot = spec.spec?.width ?? width - labels - 20;
    const numbers = marks.flatMap((mark) => ENDS.map((name) => mark[name])).filter(Number.isFinite);
    let [low, high] = [Math.min(...numbers), Math.max(...numbers)];
    if (low === high) [low, high] = [low - 0.1, high + 0.1];
    // Marks have a size of their own.
    const margin = (8 * (high - low)) / plot;
    [low, high] = [low - margin, high + margin];
    for (let round = 0; round < 60; round += 1) {
      const step = (high - low) / plot;
      for (const { align, at, [field]: text } of marks) {
        const room = step * Math.min(0.45 * plot, 16 + lengthOf(text));
        if (align === "right") low = Math.min(low, at - room);
        if (align === "left") high = Math.max(high, at + room);
      }
    }
    const scale = { nice: false, zero: false, domain: [low, high] };
    for (const { encoding } of layers) if (encoding.x?.scale) encoding.x.scale = scale;
    return spec;
  }

  function setPanels(spec, width) {
    if (width < 520) spec.columns = 1;
    spec.spec.width = Math.max(120, width / spec.columns - 60);
  }

  function runsOut(box) {
    const edge = box.getBoundingClientRect().right + 1;
    return [...box.querySelectorAll(".role-legend")].some((legend) => legend.getBoundingClientRect().right > edge);
  }

  // Folded tables are drawn when they open: a page has thousands of cells that few people read.
  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function contents(cell) {
    if (typeof cell === "string") return [cell];
    const symbol = (text) => element("span", { "aria-hidden": "true" }, text);
    if (cell.badge) {
      const [slug, sign, word] = cell.badge;
      return [element("span", { class: "badge v-" + slug }, symbol(sign), " " + word)];
    }
    const marks = cell.marks.map(([sign, text]) => element("span", { class: "mark" }, symbol(sign), element("span", { class: "spoken" }, text)));
    return [cell.text, ...marks.flatMap((mark) => [" ", mark])];
  }

  function tableOf({ caption, columns, rows: cells }) {
    const heads = columns.map(([title, numeric]) => element("th", numeric ? { scope: "col", class: "n" } : { scope: "col" }, title));
    const lines = cells.map((row) => element("tr", {}, ...row.map((cell, place) => {
      if (place === 0) return element("th", { scope: "row" }, ...contents(cell));
      const [, numeric, clipped] = columns[place];
      const attributes = numeric ? { class: cell.marks ? "n differs" : "n" } : clipped ? { class: "clip", title: cell } : {};
      return element("td", attributes, ...contents(cell));
    })));
    return element("table", {}, element("caption", {}, element("span", {}, caption)),
      element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...lines));
  }

  function fill(box) {
    const block = page.tables[box.dataset.table];
    box.removeAttribute("data-table");
    if (block.facts) {
      const pairs = block.facts.map(([name, text]) => element("div", {}, element("dt", {}, name), element("dd", {}, text)));
      box.replaceWith(element("dl", {}, ...pairs));
      return;
    }
    const table = tableOf(block);
    box.append(table);
    enhance(table);
    watch(box);
  }

  const fillShown = () => { for (const box of document.querySelectorAll("[data-table]")) if (shown(box)) fill(box); };

  const waiting = [...document.querySelectorAll("[data-chart]")];
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) { observer.unobserve(entry.target); draw(entry.target); }
    }
  }, { rootMargin: "600px" });
  const shown = (element) => element.checkVisibility?.() ?? true;
  const near = (element) => shown(element) && element.getBoundingClientRect().top < innerHeight + 600;
  for (const element of waiting) near(element) ? draw(element) : observer.observe(element);
  // What is far from view is drawn when the browser has nothing else to do, one chart at a time.
  const idle = (callback) => globalThis.requestIdleCallback?.(callback, { timeout: 500 }) ?? setTimeout(callback, 50);
  let planned = false;
  function drawLater() {
    if (planned) return;
    planned = true;
    idle(() => {
      planned = false;
      const next = waiting.find((element) => !element.dataset.drawn && shown(element));
      if (next) { draw(next); drawLater(); }
    });
  }
  drawLater();
  document.addEventListener("toggle", () => { fillShown(); drawLater(); }, true);
  // Paper shows summary, results by group and limitations; with ?full everything that is folded, too.
  const full = new URLSearchParams(location.search).has("full");
  document.documentElement.classList.toggle("full", full);
  const root = document.documentElement;
  const printed = full ? "details.section:not([open]), .fold:not([open]), .others:not([open])" : "#limits:not([open]), #data:not([open]), .others:not([open])";
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll(printed)];
    for (const fold of folded) fold.open = true;
    root.classList.add("paper");
    fillShown();
    waiting.filter(shown).forEach(draw);
    full ? layOut(1) : fit();
  });
  const shownAll = (selector) => [...document.querySelectorAll(selector)].filter(shown);
  function layOut(zoom) {
    document.getElementById("main").style.zoom = zoom;
    for (const table of shownAll("main table")) {
      // Numbers and words never break: a table that is too wide is printed smaller.
      table.style.zoom = 1;
      const share = table.parentNode.clientWidth / table.offsetWidth;
      if (share < 1) table.style.zoom = share;
    }
  }
  // Two sheets, of the smaller of A4 and US Letter: fewer cards first, then smaller text, fewer rows.
  function fit() {
    const room = 2 * 979 * 0.96;
    const over = () => document.body.getBoundingClientRect().height > room;
    const drop = (elements, least) => {
      const all = elements.length;
      while (elements.length > least && over()) elements.pop().classList.add("left-out");
      return all - elements.length;
    };
    layOut(0.9);
    drop(shownAll("#findings > :is(.card, h3)"), 4);
    layOut(0.8);
    // Groups that are worst off go last, then those that differ from the others.
    const rows = shownAll("#groups tbody tr");
    const weight = (row) => (row.textContent.includes("▲") ? 2 : row.querySelector(".differs") ? 1 : 0);
    const ordered = [...rows].sort((one, other) => weight(other) - weight(one));
    const note = document.getElementById("left-out");
    const say = (gone) => { if (note) note.textContent = gone ? `${rows.length - gone} of ${rows.length} rows are printed; all are in groups.csv.` : ""; };
    say(over());
    say(drop(ordered, 8));
    for (let zoom = 0.75; zoom > 0.5 && over(); zoom -= 0.05) layOut(zoom);
  }
  if (innerWidth < 600) for (const others of document.querySelectorAll(".others")) others.open = false;
  for (const thumbs of document.querySelectorAll("[data-thumbs]")) {
    const pictures = document.getElementById(thumbs.dataset.thumbs).querySelectorAll("img");
    for (const picture of [...pictures].slice(0, 12)) thumbs.append(picture.cloneNode());
  }
  const unfold = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();
  addEventListener("afterprint", () => {
    for (const fold of folded) fold.open = false;
    root.classList.remove("paper");
    document.getElementById("main").style.zoom = "";
    for (const table of document.querySelectorAll("table")) table.style.zoom = "";
    for (const one of document.querySelectorAll(".left-out")) one.classList.remove("left-out");
  });

  function save(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  for (const button of document.querySelectorAll("button[data-copy]")) {
    const code = button.previousElementSibling;
    button.addEventListener("click", async () => {
      getSelection().selectAllChildren(code);
      // Pages of files may not write to the clipboard: the line stays selected.
      const copied = await navigator.clipboard?.writeText(code.textContent).then(() => true, () => false);
      button.textContent = copied || document.execCommand("copy") ? "Copied" : "Selected";
    });
  }

  for (const button of document.querySelectorAll("button[data-file]")) {
    const name = button.dataset.file;
    button.addEventListener("click", () => save(new Blob([page.files[name]], { type: "text/csv" }), name));
  }

  // A chart as a file: its colours are properties of this page, which the file is without.
  async function picture(view, title) {
    const styles = getComputedStyle(root);
    const svg = (await view.toSVG()).replace(/var\((--[\w-]+)\)/g, (_, name) => styles.getPropertyValue(name).trim());
    const drawn = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
    const width = Number(drawn.getAttribute("width")), height = Number(drawn.getAttribute("height"));
    const space = drawn.namespaceURI;
    const outer = document.createElementNS(space, "svg");
    const add = (name, attributes) => {
      const part = outer.appendChild(document.createElementNS(space, name));
      for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
      return part;
    };
    for (const [key, value] of Object.entries({ width, height: height + 30, viewBox: `0 0 ${width} ${height + 30}` })) outer.setAttribute(key, value);
    add("rect", { width: "100%", height: "100%", fill: styles.getPropertyValue("--paper").trim() });
    add("text", { x: 6, y: 19, "font-family": "sans-serif", "font-size": 14, "font-weight": 600, fill: styles.getPropertyValue("--ink").trim() }).textContent = title;
    drawn.setAttribute("y", 30);
    outer.append(drawn);
    return { text: new XMLSerializer().serializeToString(outer), width, height: height + 30 };
  }

  async function png({ text, width, height }) {
    const image = new Image();
    const read = new FileReader();
    const source = new Promise((done) => { read.onload = () => done(read.result); });
    read.readAsDataURL(new Blob([text], { type: "image/svg+xml" }));
    image.src = await source;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * height });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  }

  function csv(index) {
    const chart = page.charts[index];
    const { names } = page.specs[chart.spec].usermeta;
    const fields = ["model", "label", "series", "value", "low", "high", "n", "expected"];
    const cell = (value) => (/[",\n\r]/.test(String(value ?? "")) ? `"${String(value).replaceAll('"', '""')}"` : value ?? "");
    const lines = rows(chart.data.rows).map((row) => fields.map((field) => cell(row[field])).join(","));
    return [fields.map((field) => cell(names[field] ?? field)).join(","), ...lines, ""].join("\n");
  }

  for (const exports of document.querySelectorAll("[data-exports]")) {
    const index = exports.dataset.exports;
    exports.addEventListener("click", async ({ target: { dataset: { export: kind } } }) => {
      if (!kind) return;
      if (kind === "csv") return save(new Blob([csv(index)], { type: "text/csv" }), "chart.csv");
      const title = exports.closest("figure").querySelector("figcaption").textContent;
      const drawn = await picture(views.get(index), title);
      save(kind === "svg" ? new Blob([drawn.text], { type: "image/svg+xml" }) : await png(drawn), `chart.${kind}`);
    });
  }

  function sortKey(cell) {
    const text = cell.textContent.trim();
    const digits = text.replace(/−/g, "-").replace(/[\u202f\u00a0%<≤[\s]/g, "");
    const parsed = Number.parseFloat(digits);
    return Number.isNaN(parsed) ? -Infinity : parsed;
  }

  function sortable(table) {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        const numeric = head.classList.contains("n");
        const sign = down ? -1 : 1;
        for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const keyed = [...body.rows].map((row) => [row, numeric ? sortKey(row.cells[column]) : row.cells[column].textContent]);
        keyed.sort(([, a], [, b]) => sign * (numeric ? (a > b) - (a < b) : a.localeCompare(b)));
        body.append(...keyed.map(([row]) => row));
      });
    });
  }

  function filterable(table) {
    const body = table.tBodies[0];
    const label = document.createElement("label");
    label.className = "filter";
    const input = Object.assign(document.createElement("input"), { type: "search", autocomplete: "off" });
    const status = document.createElement("span");
    status.setAttribute("role", "status");
    label.append("Filter rows", input, status);
    const tools = table.parentNode.previousElementSibling;
    tools?.classList.contains("tools") ? tools.prepend(label) : table.parentNode.before(label);
    input.addEventListener("input", () => {
      const wanted = input.value.toLocaleLowerCase();
      let left = 0;
      for (const row of body.rows) {
        row.hidden = !row.textContent.toLocaleLowerCase().includes(wanted);
        left += row.hidden ? 0 : 1;
      }
      status.textContent = wanted ? left + " of " + body.rows.length + " rows" : "";
    });
  }

  // A table with columns out of sight fades at its edge.
  const across = (box) => {
    const hidden = box.scrollWidth - box.clientWidth;
    box.classList.toggle("right", hidden > 1 && box.scrollLeft < hidden - 1);
  };
  const sizes = new ResizeObserver((entries) => { for (const entry of entries) across(entry.target); });
  function watch(box) {
    sizes.observe(box);
    box.addEventListener("scroll", () => across(box), { passive: true });
  }

  function enhance(table) {
    const long = table.tBodies[0].rows.length;
    if (long > 2) sortable(table);
    if (long > 15) filterable(table);
  }

  for (const table of document.querySelectorAll("main table")) enhance(table);
  document.querySelectorAll(".table:not([data-table])").forEach(watch);
  fillShown();
})();
