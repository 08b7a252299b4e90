// The live list of requests, and the one that is chosen beside it.
import { button, bytes, clock, duration, empty, make, save, statusClass, toast, zone } from "./dom.js";
import { ask, follow, get, post, remove } from "./api.js";
import { choices, go } from "./state.js";
import { RowList } from "./list.js";
import { FilterBox } from "./filter.js";
import { Detail } from "./detail.js";
import { Spark } from "./spark.js";

const most = 100000;
const cut = (url) => {
  const rest = /^[a-z]+:\/\/([^/?#]*)(.*)$/i.exec(url ?? "");
  return rest ? [rest[1], rest[2] || "/"] : ["", url ?? ""];
};
const kinds = { http: "", websocket: "ws", sse: "sse", grpc: "grpc" };

const allColumns = [
  { key: "id", title: "#", width: "58px", isNumber: true, text: (row) => row.id, className: () => "number quiet" },
  { key: "time", title: "Time", width: "92px", text: (row) => row.clock ??= clock(row.time), className: () => "quiet" },
  {
    key: "method",
    title: "Method",
    width: "70px",
    text: (row) => row.method,
    className: (row) => "method m-" + row.method,
  },
  {
    key: "status",
    title: "Status",
    width: "58px",
    text: (row) => row.status ? String(row.status) : row.state === "open" ? "…" : row.fault ? "fault" : "–",
    className: (row) => "status " + statusClass(row),
  },
  {
    key: "host",
    title: "Host",
    width: "minmax(90px,1fr)",
    hasTitle: true,
    text: (row) => (row.parts ??= cut(row.url))[0],
  },
  {
    key: "path",
    title: "Path",
    width: "minmax(90px,3fr)",
    hasTitle: true,
    text: (row) =>
      (row.pinned ? "★ " : "") + (row.operation ? row.operation + "  " : "") + (row.parts ??= cut(row.url))[1],
  },
  {
    key: "type",
    title: "Type",
    width: "minmax(60px,92px)",
    hasTitle: true,
    text: (row) => kinds[row.kind] || shortType(row.contentType) || "",
    className: () => "quiet",
  },
  {
    key: "did",
    title: "Wares",
    width: "minmax(60px,130px)",
    hasTitle: true,
    text: (row) =>
      row.fault ?? (row.replayOf ? "replay " : "") + (row.rules?.length ? "rule " : "") + (row.did ?? []).join(" "),
    className: (row) => row.fault ? "fault" : "did",
  },
  {
    key: "route",
    title: "Route",
    width: "minmax(60px,96px)",
    hasTitle: true,
    text: (row) => row.route ?? "",
    className: () => "quiet",
  },
  {
    key: "service",
    title: "Service",
    width: "minmax(60px,96px)",
    text: (row) => row.service ?? "",
    className: () => "quiet",
  },
  {
    key: "client",
    title: "Client",
    width: "minmax(90px,130px)",
    text: (row) => row.client ?? "",
    className: () => "quiet",
  },
  { key: "version", title: "Protocol", width: "74px", text: (row) => row.version ?? "", className: () => "quiet" },
  { key: "comment", title: "Comment", width: "minmax(60px,130px)", hasTitle: true, text: (row) => row.comment ?? "" },
  { key: "size", title: "Size", width: "76px", isNumber: true, text: (row) => bytes(row.responseSize) },
  {
    key: "duration",
    title: "Duration",
    width: "80px",
    isNumber: true,
    text: (row) => duration(row.duration),
    className: (row) => row.duration > 1000 ? "number slow" : "number",
  },
];
/** The columns that leave if there is little room, the first one first; and the width that stretching columns want. */
const leaving = ["service", "route", "version", "client", "comment", "type", "id", "did", "size", "time", "host"],
  wants = { host: 110, path: 220 };
const want = (columns) =>
  columns.reduce((sum, column) => sum + 12 + (wants[column.key] ?? parseInt(column.width.replace("minmax(", ""))), 30);
const usual = ["time", "method", "status", "host", "path", "type", "did", "route", "size", "duration"];
const shortType = (type) =>
  (type ?? "").split(";")[0].replace(/^(application|text|image)\//, "").replace(/^x-/, "").replace("javascript", "js")
    .replace("octet-stream", "binary");

export function requests(main, start) {
  let isPaused = false,
    waiting = 0,
    next = 0,
    isLoading = false,
    isRecords = false,
    turn = 0,
    compareWith = null,
    filtered = null,
    wasOpen = false;
  let stream = new AbortController();
  const filter = new FilterBox((text) => {
    const now = state();
    go("requests", now.id, { filter: text, tab: now.tab }, true);
  }, suggest);
  const list = new RowList({
    label: "requests",
    onSelect: (row) => {
      if (!detail.element.hidden) open(row.id);
    },
    onOpen: (row) => open(row.id),
    onEnd: () => older(),
  });
  const detail = new Detail({
    close: () => open(null),
    tab: (name) => go("requests", detail.id, { filter: filter.value, tab: name }, true),
    again: (id) => open(id),
    compare: choose,
    changed: (row) => list.put([row], most),
  });
  const spark = new Spark();
  const counts = make("span.counts", { role: "status" });
  const pauseButton = button("pause", () => pause(!isPaused), { "aria-label": "pause", "aria-pressed": "false" });
  const columnsButton = button("columns", pickColumns, { "aria-haspopup": "true", "aria-expanded": "false" });
  const note = make("p.note", { hidden: true });
  const split = make("div.split", list.element, detail.element);
  main.append(
    make(
      "div.bar",
      filter.element,
      make(
        "div.tools",
        pauseButton,
        button("clear", clear, { "aria-label": "clear", title: "Forget all captures but pinned ones" }),
        button("pin", pinChosen, { "aria-label": "pin", title: "Keep the chosen request as long as others can go" }),
        columnsButton,
        button("HAR", har, { title: "Save what the filter shows as an HTTP archive" }),
        button("open HAR", openHar),
      ),
      spark.element,
      counts,
    ),
    note,
    split,
  );
  let width = 0;
  const sizes = new ResizeObserver(() => {
    const now = list.element.clientWidth;
    if (Math.abs(now - width) > 20) {
      width = now;
      addColumns();
    }
  });
  sizes.observe(list.element);

  const state = () => {
    const hash = new URLSearchParams(location.hash.split("?")[1] ?? "");
    return { id: detail.id, tab: hash.get("tab") };
  };

  function suggest(operator) {
    const read = {
      "~m": (row) => row.method,
      "~d": (row) => row.parts?.[0]?.replace(/:\d+$/, ""),
      "~c": (row) => String(row.status ?? ""),
      "~route": (row) => row.route,
      "~service": (row) => row.service,
      "~did": (row) => row.did?.[0],
      "~gql": (row) => row.operation,
      "~t": (row) => row.contentType?.split(";")[0],
      "~ts": (row) => row.contentType?.split(";")[0],
    }[operator];
    if (!read) return [];
    const found = new Set();
    for (let index = list.rows.length - 1; index >= 0 && index > list.rows.length - 3000; index -= 1) {
      const value = read(list.rows[index]);
      if (value) found.add(value);
    }
    return [...found].sort();
  }

  function addColumns() {
    const chosen = new Set(choices.read("columns", usual));
    let shown = allColumns.filter((column) => chosen.has(column.key));
    for (const key of leaving) {
      if (shown.length > 1 && want(shown) > list.element.clientWidth) {
        shown = shown.filter((column) => column.key !== key);
      }
    }
    list.setColumns(shown);
  }

  function pickColumns() {
    const open = main.querySelector(".popover");
    columnsButton.setAttribute("aria-expanded", String(!open));
    if (open) return open.remove();
    const chosen = new Set(choices.read("columns", usual));
    const box = make(
      "fieldset.popover",
      {
        onkeydown: (event) => {
          if (event.key === "Escape") {
            event.stopPropagation();
            pickColumns();
            columnsButton.focus();
          }
        },
      },
      make("legend", "Columns"),
      allColumns.map((column) =>
        make(
          "label",
          make("input", {
            type: "checkbox",
            checked: chosen.has(column.key),
            onchange: (event) => {
              if (event.target.checked) chosen.add(column.key);
              else chosen.delete(column.key);
              if (chosen.size) {
                choices.write("columns", [...chosen]);
                addColumns();
              }
            },
          }),
          column.key === "id" ? "Number" : column.title,
        )
      ),
    );
    columnsButton.after(box);
    box.querySelector("input").focus();
  }

  function say() {
    const shown = list.rows.length;
    counts.textContent = shown.toLocaleString() + (next ? "+" : "") + (shown === 1 ? " request" : " requests") +
      (isPaused ? waiting ? `, paused, ${waiting.toLocaleString()} new` : ", paused" : "");
    counts.title = "Times: " + zone();
  }

  const path = (name, more) =>
    "/v1/captures" + name + "?" + new URLSearchParams({ ...(filter.value ? { filter: filter.value } : {}), ...more });

  async function load() {
    const own = ++turn;
    stream.abort();
    stream = new AbortController();
    list.clear();
    next = 0;
    waiting = 0;
    if (isRecords) return loadRecords(own);
    // The stream first: what changes while the list is read is in one of them, or in both.
    follow(path("/events"), stream.signal, take, (isOpen) => {
      live(isOpen);
      if (isOpen && own === turn) newest(own);
    });
    await newest(own);
  }

  async function newest(own) {
    try {
      const page = await get(path("", { limit: 200 }), { signal: stream.signal });
      if (own !== turn) return;
      filter.say(null);
      const isFirst = !list.rows.length;
      list.put(page.captures.reverse(), most);
      if (isFirst && !isLoading) {
        next = page.next;
        if (page.captures.length < 200) older();
      }
      say();
      if (isFirst && detail.id) list.select(detail.id, true);
      showEmpty();
    } catch (error) {
      if (error.name === "AbortError" || own !== turn) return;
      if (error.status === 404) {
        isRecords = true;
        return load();
      }
      if (error.status === 400) filter.say(error);
      else toast(error.message);
      say();
    }
  }

  async function older() {
    if (!next || isLoading || isRecords || list.rows.length >= most) return;
    isLoading = true;
    const own = turn;
    try {
      // A search that is out of time goes on.
      for (let found = 0; found < 200 && next && own === turn;) {
        const page = await get(path("", { before: next, limit: 1000 }), { signal: stream.signal });
        if (own !== turn) return;
        next = page.next;
        found += page.captures.length;
        list.putOlder(page.captures);
        say();
      }
    } catch (error) {
      if (own === turn) toast(error.message);
    } finally {
      isLoading = false;
      showEmpty();
    }
  }

  /** Without captures the records of the last exchanges are shown: what happened, but no fields and no content. */
  async function loadRecords(own) {
    note.hidden = false;
    note.textContent =
      "Nothing is captured: write admin.capture: {} in the configuration, or start with httpware inspect, " +
      "to see fields and content here. Shown are the records of the last exchanges, without a filter.";
    filter.input.disabled = true;
    try {
      const path = "/v1/requests?limit=200";
      follow("/v1/events", stream.signal, (type, data) => {
        if (type === "message") take("capture", fromRecord(data));
      }, live);
      list.put((await get(path)).map(fromRecord).reverse(), most);
      if (detail.id) {
        detail.record = list.byId.get(detail.id)?.record;
        list.select(detail.id, true);
      }
      say();
      showEmpty();
    } catch (error) {
      if (own === turn) toast(error.message);
    }
  }

  const fromRecord = (record) => ({
    ...record,
    record,
    url: "http://" + (record.host ?? "") + record.target,
    state: "ended",
    kind: "http",
    pinned: false,
    comment: "",
    operation: null,
    replayOf: null,
    rules: [],
    did: record.wares.filter((ware) => ware.decision !== "passed").map((ware) => ware.decision),
    responseSize: record.responseBytes,
    requestSize: record.requestBytes,
    version: record.protocol,
  });

  function take(type, data) {
    if (type === "lost") {
      return toast(
        `${data.lost.toLocaleString()} requests are not kept: pinned requests fill the memory. ` +
          "Unpin some, or raise admin.capture.memory.",
      );
    }
    if (type === "dropped") {
      return toast(`${data.dropped.toLocaleString()} changes came too fast to be shown; the list is sampled`);
    }
    if (type !== "capture") return;
    const rows = data.captures ?? [data];
    spark.add(rows);
    if (isPaused) {
      waiting += rows.filter((row) => !list.byId.has(row.id)).length;
      list.put(rows.filter((row) => list.byId.has(row.id)), most);
    } else list.put(rows, most);
    if (detail.id && rows.some((row) => row.id === detail.id)) detail.refresh();
    say();
    showEmpty();
  }

  function showEmpty() {
    const has = list.rows.length > 0, box = list.element.querySelector(".empty");
    if (has) return box?.remove();
    if (box || isLoading) return;
    list.element.append(
      filter.value
        ? empty("Nothing matches", "The filter is read by the gateway; matching requests appear as they come.")
        : empty(
          "Waiting for requests",
          "Send one through the gateway, as: curl -x http://127.0.0.1:8888 http://example.com/",
        ),
    );
  }

  function live(isOpen) {
    const box = document.getElementById("live");
    box.textContent = isOpen ? "live" : "no connection to the gateway";
    box.className = isOpen ? "ok" : "bad";
  }

  function open(id) {
    go("requests", id, { filter: filter.value, tab: id ? state().tab : null }, detail.id !== null && id !== null);
  }

  function show(id, tab) {
    list.select(id);
    if (id && isRecords) detail.record = list.byId.get(id)?.record;
    detail.show(id, tab);
    if (split.classList.toggle("open", id !== null) !== wasOpen || !list.columns.length) {
      wasOpen = id !== null;
      addColumns();
    }
    list.draw();
  }

  function pause(on) {
    isPaused = on;
    pauseButton.setAttribute("aria-pressed", String(on));
    pauseButton.textContent = on ? "go on" : "pause";
    if (!on) load();
    say();
  }

  async function clear() {
    if (isRecords) {
      list.clear();
      return say();
    }
    try {
      await remove(path(""));
      open(null);
      await load();
    } catch (error) {
      toast(error.message);
    }
  }

  async function pinChosen() {
    const row = list.byId.get(list.selected);
    if (!row) return toast("choose a request first");
    try {
      const pinned = !row.pinned;
      await post(`/v1/captures/${row.id}/pin`, { pinned });
      list.put([{ id: row.id, pinned }], most);
      detail.refresh();
    } catch (error) {
      toast(error.message);
    }
  }

  function choose(id) {
    if (compareWith && compareWith !== id) {
      go("compare", null, { a: compareWith, b: id });
      compareWith = null;
    } else {
      compareWith = id;
      toast(`choose the request to compare ${id} with, and press compare again`);
    }
  }

  async function har() {
    try {
      save(
        "httpware.har",
        await (await ask("/v1/har?" + new URLSearchParams(filter.value ? { filter: filter.value } : {}))).blob(),
        "application/json",
      );
    } catch (error) {
      toast(error.message);
    }
  }

  function openHar() {
    const input = make("input", { type: "file", accept: ".har,application/json" });
    input.addEventListener("change", async () => {
      try {
        const answer = await post("/v1/har", undefined, {
          body: input.files[0],
          headers: { "Content-Type": "application/json" },
        });
        toast(
          `${answer.imported} requests read` +
            (answer.warnings?.length ? `, ${answer.warnings.length} warnings: ${answer.warnings[0]}` : ""),
        );
        load();
      } catch (error) {
        toast(error.message);
      }
    });
    input.click();
  }

  function update(now) {
    const text = now.parameters.get("filter") ?? "";
    if (text !== filtered) {
      filtered = text;
      filter.value = text;
      filter.say(null);
      load();
    }
    show(now.id, now.parameters.get("tab"));
  }

  update(start);
  return {
    update,
    leave() {
      stream.abort();
      turn += 1;
      sizes.disconnect();
      list.leave();
      spark.leave();
      detail.leave();
      document.getElementById("live").textContent = "";
    },
    escape() {
      if (main.querySelector(".popover")) pickColumns();
      else if (detail.id) open(null);
    },
    key(event) {
      if (event.key === "/") {
        filter.input.focus();
        filter.input.select();
        return true;
      }
      if (event.key === "x") {
        pause(!isPaused);
        return true;
      }
      if (event.key === "p") {
        pinChosen();
        return true;
      }
      if (event.key === "c" && list.selected) {
        choose(list.selected);
        return true;
      }
      if (event.key === "e" && detail.id) {
        detail.edit();
        return true;
      }
      if (event.key === "y" && detail.id) {
        detail.copyCurl();
        return true;
      }
      if (event.target !== list.body && list.key(event)) {
        list.body.focus({ preventScroll: true });
        return true;
      }
      return false;
    },
  };
}
