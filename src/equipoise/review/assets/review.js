"use strict";
const images = [...document.querySelectorAll("a.image")];
const outcomes = [...document.querySelectorAll(".outcomes a")];
const codes = [...document.querySelectorAll(".codes input")];
const typing = (target) => target.closest("input:not([type=checkbox]), select, textarea, button") !== null;

function move(steps) {
  const at = images.indexOf(document.activeElement);
  const to = images[Math.min(images.length - 1, Math.max(0, at + steps))];
  if (to) to.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 }[event.key];
  const link = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (steps && images.length) move(steps);
  else if (link) link.click();
  else if (/^[1-9]$/.test(event.key) && codes[event.key - 1]) codes[event.key - 1].click();
  else if (/^[1-9]$/.test(event.key) && outcomes[event.key - 1]) outcomes[event.key - 1].click();
  else return;
  event.preventDefault();
});
for (const select of document.querySelectorAll(".filters select")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}
