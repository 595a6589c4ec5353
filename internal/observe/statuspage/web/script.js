// Copyright The Coxswain Authors. SPDX-License-Identifier: Apache-2.0
// Updates the page by server-sent events, and moves through the grids by keyboard. It loads nothing else and keeps nothing.
"use strict";
(() => {
  const retryAfter = 10000; // ms, when the server has refused the stream
  const live = document.getElementById("live");
  const details = document.getElementById("details");
  const isNode = (e) => e instanceof HTMLElement && e.tagName === "I" && e.closest(".grid") !== null;
  const nodeName = (e) => e.title.split("\n", 1)[0];

  function show(e) {
    if (isNode(e)) details.textContent = e.title;
  }

  // One node of each grid is reached by Tab: the one that was selected last, or the first.
  function select(e) {
    for (const old of e.closest(".grid").querySelectorAll('i[tabindex="0"]')) old.tabIndex = -1;
    e.tabIndex = 0;
  }
  function reachable() {
    for (const grid of document.querySelectorAll(".grid")) {
      const first = grid.querySelector("i");
      if (first && !grid.querySelector('i[tabindex="0"]')) first.tabIndex = 0;
    }
  }

  // replace puts fragments in the place of old ones. Whoever has selected a node keeps it.
  function replace(fragments) {
    const active = document.activeElement;
    const selected = isNode(active) ? { name: nodeName(active), list: active.closest(".grid").getAttribute("aria-label") } : null;
    for (const [id, html] of Object.entries(fragments)) {
      const e = document.getElementById(id);
      if (!e) continue;
      const open = [...e.querySelectorAll("details")].map((d) => d.open);
      e.innerHTML = html;
      e.querySelectorAll("details").forEach((d, i) => { d.open = open[i] || false; });
    }
    if (selected && !document.activeElement.closest(".grid")) {
      for (const grid of document.querySelectorAll(".grid")) {
        if (grid.getAttribute("aria-label") !== selected.list) continue;
        const again = [...grid.querySelectorAll("i")].find((e) => nodeName(e) === selected.name);
        if (again) { select(again); again.focus({ preventScroll: true }); }
      }
    } else if (selected) {
      show(document.activeElement);
    }
    reachable();
  }

  function follow(url) {
    const events = new EventSource(url);
    events.addEventListener("open", () => { live.textContent = "This page follows the cluster."; });
    events.addEventListener("fragments", (e) => replace(JSON.parse(e.data)));
    events.addEventListener("error", () => {
      live.textContent = "The connection is interrupted: this page shows how it was.";
      // The browser itself tries again, unless the server has refused.
      if (events.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), retryAfter);
    });
  }

  document.addEventListener("focusin", (e) => { if (isNode(e.target)) { select(e.target); show(e.target); } });
  document.addEventListener("mouseover", (e) => { if (!isNode(document.activeElement)) show(e.target); });
  document.addEventListener("keydown", (e) => {
    if (!isNode(e.target) || e.altKey || e.ctrlKey || e.metaKey) return;
    const all = [...e.target.closest(".grid").querySelectorAll("i")];
    const at = all.indexOf(e.target);
    const row = all.findIndex((n) => n.offsetTop !== all[0].offsetTop);
    const columns = row < 0 ? all.length : row;
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + columns, ArrowUp: at - columns, Home: 0, End: all.length - 1 }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    if (all[to]) all[to].focus();
  });
  reachable();
  follow(document.body.dataset.events);
})();
