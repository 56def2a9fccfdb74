"use strict";
(() => {
  const element = (id) => document.getElementById(id);
  const data = JSON.parse(element("data").textContent);
  const given = new Map();
  let place = 0;
  let saved = true;

  const buttons = data.answers.map((answer, index) => {
    const button = document.createElement("button");
    const key = document.createElement("kbd");
    key.textContent = String(index + 1);
    button.type = "button";
    button.append(key, answer);
    button.addEventListener("click", () => choose(index));
    element("answers").append(button);
    return button;
  });

  function show() {
    const [key, picture, label] = data.images[place];
    element("picture").src = picture;
    element("label").textContent = label && `Label: ${label}`;
    element("label").hidden = !label;
    const answer = given.get(key)?.answer;
    buttons.forEach((button, index) =>
      button.setAttribute("aria-pressed", String(data.answers[index] === answer)));
    const all = data.images.length;
    const name = element("labeller").value.trim();
    element("bar").value = given.size;
    element("progress").textContent = `Image ${place + 1}. ${name ? `${name}: ` : ""}` +
      `${given.size} of ${all} answered` + (given.size === all ? ". Save your answers." : "");
    element("json").textContent = saved ? "Save answers" : `Save ${given.size} answers`;
  }

  function move(step) {
    place = Math.min(Math.max(place + step, 0), data.images.length - 1);
    show();
  }

  function choose(index) {
    if (!named()) return;
    given.set(data.images[place][0], { answer: data.answers[index], at: new Date().toISOString() });
    saved = false;
    move(1);
  }

  // As `name_problem` in labellers.py, which refuses other names when answers are read.
  function problem(field) {
    const name = field.value.trim();
    const plain = name.replace(/[\u200c\u200d]/g, "");
    if (!plain.trim()) return "Enter your name first.";
    if (/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\ufffd]/u.test(plain)) {
      return "Enter a name without control or invisible characters.";
    }
    if (!field.readOnly && plain.normalize("NFKC").trim().toLowerCase() === data.settled) {
      return `Enter another name: answers of “${data.settled}” overrule all others.`;
    }
    return "";
  }

  function named() {
    const field = element("labeller");
    const wrong = problem(field);
    if (!wrong) return field.value.trim();
    field.focus();
    element("progress").textContent = wrong;
    return "";
  }

  const quoted = (text) => `"${text.replaceAll('"', '""')}"`;

  function save(kind) {
    const labeller = named();
    if (!labeller) return;
    const rows = [...given].map(([key, { answer, at }]) =>
      ({ key, question: data.question, answer, labeller, at }));
    const columns = ["key", "question", "answer", "labeller", "at"];
    const text = kind === "json"
      ? JSON.stringify(rows, null, 1)
      : [columns, ...rows.map((row) => columns.map((name) => row[name]))]
        .map((cells) => cells.map(quoted).join(",")).join("\n") + "\n";
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    link.download = `answers-${labeller.replace(/[^\p{L}\p{N}_-]+/gu, "-")}.${kind}`;
    link.click();
    URL.revokeObjectURL(link.href);
    saved = true;
    show();
  }

  document.addEventListener("keydown", (event) => {
    const field = element("labeller");
    if (event.target === field && event.key === "Enter") field.blur();
    if (event.target === field || event.ctrlKey || event.metaKey || event.altKey) return;
    const index = Number(event.key) - 1;
    if (data.answers[index] !== undefined) choose(index);
    else if (event.key === "ArrowLeft") move(-1);
    else if (event.key === "ArrowRight") move(1);
    else if (event.key.toLowerCase() === "s") save("json");
    else return;
    event.preventDefault();
  });
  element("labeller").addEventListener("change", show);
  element("back").addEventListener("click", () => move(-1));
  element("skip").addEventListener("click", () => move(1));
  element("json").addEventListener("click", () => save("json"));
  element("csv").addEventListener("click", () => save("csv"));
  window.addEventListener("beforeunload", (event) => { if (!saved) event.preventDefault(); });
  show();
})();
