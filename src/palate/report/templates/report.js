"use strict";
(() => {
  const names = { c: "correct", w: "wrong", t: "tie", "-": "not scored" };
  const tone = { c: "good", w: "bad" };
  const step = 200;
  const brief = (text) => (text.length > 80 ? `${text.slice(0, 79)}…` : text);
  document.querySelectorAll("[data-browser]").forEach((bar) => {
    const number = bar.dataset.browser;
    const all = kit.json(`overview-${number}`);
    const list = document.querySelector(`[data-list="${number}"]`);
    const place = document.querySelector(`[data-item="${number}"]`);
    const field = (name) => bar.querySelector(`[data-f="${name}"]`);
    const packs = new Map();
    let hits = [];
    let current = -1;
    let opening = 0;

    [...new Set(all.items.map((i) => i[1]))].forEach((d) => field("domain").append(kit.el("option", { value: d }, brief(d))));
    const letter = (k) => all.runs[field("run").value].letters[k];

    function row(k) {
      const [id, , question] = all.items[k];
      const mark = letter(k);
      const button = kit.el("button", { type: "button", onclick: () => open(k, true) },
        kit.el("b", {}, id), " ", kit.el("span", { class: tone[mark] || "soft" }, names[mark]), kit.el("br"), question);
      if (k === current) button.setAttribute("aria-current", "true");
      button.dataset.k = k;
      return kit.el("li", {}, button);
    }
    function more() {
      const shown = list.querySelectorAll("button[data-k]").length;
      list.querySelector("[data-more]")?.remove();
      hits.slice(shown, shown + step).forEach((k) => list.append(row(k)));
      const left = hits.length - shown - step;
      if (left > 0) list.append(kit.el("li", { "data-more": "" }, kit.el("button", { type: "button", onclick: more }, `${left} more`)));
    }
    function filter() {
      const outcome = field("outcome").value, domain = field("domain").value;
      const words = field("search").value.toLowerCase();
      hits = all.items.map((_, k) => k).filter((k) =>
        (!outcome || letter(k) === outcome) && (!domain || all.items[k][1] === domain) &&
        (!words || `${all.items[k][0]} ${all.items[k][2]}`.toLowerCase().includes(words)));
      field("count").textContent = `${hits.length} of ${all.items.length} items`;
      list.replaceChildren();
      more();
    }
    async function detail(k) {
      const part = Math.floor(k / all.chunk);
      if (!packs.has(part)) packs.set(part, kit.unpack(`chunk-${number}-${part}`));
      return (await packs.get(part))[k % all.chunk];
    }
    const box = (title, text, extra) => kit.el("div", { class: "box" }, kit.el("h4", { class: "soft" }, title), kit.el("p", { class: "text", dir: "auto" }, text), ...(extra || []));
    const value = (x) => (x === null || x === undefined ? "–" : String(Number(x.toPrecision(5))));

    function verdicts(item) {
      const told = item.said.map(([, , , , , dropped, notes]) => [...(dropped ? [`${dropped} dropped`] : []), ...notes].join("; "));
      const noted = told.some((t) => t);
      const body = all.runs.map((run, r) => {
        const [status, outcome, up, down] = item.said[r];
        const mark = outcome || status;
        const name = { correct: "good", wrong: "bad" }[mark] || "soft";
        return kit.el("tr", {}, kit.el("td", { class: "wrap" }, kit.el("bdi", {}, run.model)), kit.el("td", { class: "left" }, run.view),
          kit.el("td", { class: `left ${name}` }, mark.replaceAll("_", " ")), kit.el("td", {}, value(up)), kit.el("td", {}, value(down)),
          ...(noted ? [kit.el("td", { class: "left wrap" }, told[r])] : []));
      });
      const names = ["model", "view", "outcome", "chosen", "rejected", ...(noted ? ["notes"] : [])];
      const head = names.map((t, i) => kit.el("th", { scope: "col", class: [1, 2, 5].includes(i) ? "left" : "" }, t));
      return kit.el("div", { class: "scroll" }, kit.el("table", {}, kit.el("thead", {}, kit.el("tr", {}, ...head)), kit.el("tbody", {}, ...body)));
    }
    function replies(item) {
      const said = item.said[field("run").value][8];
      if (!said.length) return "";
      const boxes = said.map(([name, status, text]) => box(status === "ok" ? name : `${name}: ${status}`, text));
      return kit.el("details", {}, kit.el("summary", {}, `What it replied (${said.length})`), ...boxes);
    }
    function shown(item) {
      const said = item.said[field("run").value];
      const turns = item.contexts[said[4]];
      const run = all.runs[field("run").value];
      if (typeof turns === "string") return kit.el("p", { class: "soft", "data-untold": "" }, turns);
      const texts = [];
      for (let t = 0; t < turns.length; t += 2) texts.push(kit.el("p", { class: "soft" }, turns[t]), kit.el("p", { class: "text", dir: "auto" }, turns[t + 1]));
      const late = said[0] === "overlong" ? `Too long for the model, so not scored${said[6].length ? ` (${said[6].join("; ")})` : ""}. What it would have been shown, with` : "As shown to";
      const part = said[7] > 1 ? `, the first of ${said[7]} draws` : "";
      return kit.el("div", {}, kit.el("h4", { class: "soft" }, `${late} ${run.model} under ${run.view}${part}`), kit.el("div", { class: "shown", tabindex: "0" }, ...texts));
    }
    async function open(k, byHand) {
      const ticket = ++opening;
      const item = await detail(k);
      if (ticket !== opening) return;
      current = k;
      list.querySelectorAll("[aria-current]").forEach((b) => b.removeAttribute("aria-current"));
      list.querySelector(`button[data-k="${k}"]`)?.setAttribute("aria-current", "true");
      const [id, domain, , twin] = all.items[k];
      const twinAt = all.items.findIndex((i) => i[0] === twin);
      const link = twinAt >= 0 ? [" · twin ", kit.el("button", { type: "button", onclick: () => open(twinAt, true) }, twin)] : [];
      const wants = item.wants.map(([aspect, reason]) => kit.el("li", {}, kit.el("b", {}, aspect), reason ? ` ${reason}` : ""));
      const last = item.turns[item.turns.length - 1][1];
      place.replaceChildren(
        kit.el("h3", { style: "margin-top:0" }, id),
        kit.el("p", { class: "soft" }, `${brief(domain.replaceAll("_", " "))} · user ${brief(item.user ?? "not named")}`, ...link),
        kit.el("p", { class: "text", dir: "auto" }, kit.el("b", {}, last)),
        kit.el("div", { class: "pair" }, box("chosen: what this user wants", item.chosen), box("rejected", item.rejected)),
        ...(wants.length ? [kit.el("details", {}, kit.el("summary", {}, "What this user wants (the answer key)"), kit.el("ul", {}, ...wants))] : []),
        shown(item), replies(item), verdicts(item));
      if (byHand) {
        history.replaceState(null, "", `#item-${number}-${encodeURIComponent(id)}`);
        place.focus({ preventScroll: true });
        if (matchMedia("(max-width:760px)").matches) place.scrollIntoView({ block: "start" });
      }
    }
    ["run", "outcome", "domain"].forEach((name) => field(name).addEventListener("change", () => {
      filter();
      if (current >= 0) open(current);
    }));
    field("search").addEventListener("input", filter);
    list.addEventListener("keydown", (event) => {
      const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!move) return;
      const buttons = [...list.querySelectorAll("button")];
      const next = buttons[buttons.indexOf(document.activeElement) + move];
      if (next) { next.focus(); event.preventDefault(); }
    });
    filter();
    function fromAddress() {
      const prefix = `#item-${number}-`;
      if (!location.hash.startsWith(prefix)) return;
      const k = all.items.findIndex((i) => i[0] === decodeURIComponent(location.hash.slice(prefix.length)));
      if (k >= 0) open(k).then(() => place.scrollIntoView({ block: "start" }));
    }
    addEventListener("hashchange", fromAddress);
    fromAddress();
  });
})();
