"use strict";
// Saves every change as it is made, and lets the keyboard do everything. The page works without it.
(() => {
  const form = document.querySelector("form[data-save]");
  if (!form || form.querySelector("fieldset.all").disabled) return;
  const status = form.querySelector("[data-saved]");
  const groups = [...form.querySelectorAll("[data-group]")];
  const comment = form.querySelector("textarea");
  const pending = new Map();
  let sending = false, refused = false, finishing = false, typing = 0, wait = 0;

  const say = (text, bad) => { status.textContent = text; status.classList.toggle("bad", Boolean(bad)); };
  const body = (fields) => new URLSearchParams([["form_token", form.elements.form_token.value], ...fields]);
  const post = (fields, keepalive) => fetch(form.dataset.save, {
    method: "POST", body: body(fields), headers: { Accept: "application/json" }, keepalive, signal: AbortSignal.timeout(15000),
  });

  async function send() {
    if (sending) return;
    if (refused || !pending.size) {
      if (finishing) form.requestSubmit();
      return;
    }
    sending = true;
    const fields = [...pending];
    say("Saving …");
    try {
      const reply = await post(fields, false);
      if (reply.ok) {
        for (const [name, value] of fields) if (pending.get(name) === value) pending.delete(name);
        wait = 0;
        if (!pending.size) say("Saved");
      } else if (reply.status >= 500) {
        throw new Error(reply.statusText);
      } else {
        refused = true;
        let told = "";
        try { told = (await reply.json()).error; } catch { told = `The server refused it (${reply.status}).`; }
        say(`Not saved. ${told}`, true);
      }
    } catch {
      wait = Math.min(30, wait * 2 || 1);
      say("Not saved yet: the server does not answer. Trying again …", true);
      sending = false;
      setTimeout(send, wait * 1000);
      return;
    }
    sending = false;
    if (pending.size || finishing) send();
  }

  function keep(field) {
    refused = finishing = false;
    pending.set(field.name, field.value);
    send();
  }

  let kept = comment?.value;
  function noteComment() {
    clearTimeout(typing);
    if (comment && comment.value !== kept) pending.set("comment", kept = comment.value);
  }

  const chosen = (group) => group.querySelector("input:checked");
  const focusOn = (group) => (chosen(group) || group.querySelector("input")).focus();

  form.addEventListener("change", (event) => {
    if (event.target === comment) { noteComment(); send(); return; }
    event.target.closest("[data-group]")?.classList.remove("gap");
    keep(event.target);
  });
  comment?.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => { refused = false; noteComment(); send(); }, 600);
  });
  // What is not sent when the page goes away is sent by the browser after it.
  addEventListener("pagehide", () => {
    noteComment();
    if (pending.size && !refused) post([...pending], true).catch(() => {});
  });
  form.addEventListener("submit", () => { finishing = false; pending.clear(); });
  addEventListener("online", send);

  function pick(group, value) {
    const input = [...group.querySelectorAll("input")].find((i) => i.value === value);
    if (!input) return false;
    input.checked = true;
    input.dispatchEvent(new Event("change", { bubbles: true }));
    const next = groups[groups.indexOf(group) + 1];
    if (next) focusOn(next); else input.focus();
    return true;
  }

  function finish() {
    const gaps = groups.filter((group) => !chosen(group));
    for (const group of groups) group.classList.toggle("gap", gaps.includes(group));
    if (!gaps.length) {
      // Only once all is saved: should the server be gone, the page stays and tries again.
      finishing = true;
      noteComment();
      send();
      return;
    }
    say(`${gaps.length} still missing`, true);
    focusOn(gaps[0]);
  }

  form.noValidate = true;
  form.querySelector(".primary").addEventListener("click", (event) => { event.preventDefault(); finish(); });

  addEventListener("keydown", (event) => {
    const inText = event.target === comment;
    if (event.key === "Enter" && (inText ? event.ctrlKey || event.metaKey : event.target.type === "radio")) {
      event.preventDefault();
      finish();
      return;
    }
    if (inText || event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key.toLowerCase();
    if ("12345".includes(key) && key.length === 1) {
      const group = document.activeElement.closest("[data-group]") || groups.find((g) => !chosen(g)) || groups[0];
      if (pick(group, key)) event.preventDefault();
    } else if ("anb".includes(key) && key.length === 1) {
      const group = groups.find((g) => g.dataset.group === "preference");
      if (group && pick(group, key === "n" ? "none" : key)) event.preventDefault();
    }
  });
})();
