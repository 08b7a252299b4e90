// Makes elements. Whatever comes from outside becomes text, never markup.

/**
 * Makes an element, as in `make("td.number", {title: "…"}, "text", child…)`. Attributes that begin with `on` are
 * listeners; null children are left out.
 */
export function make(name, ...rest) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const item of rest.flat(Infinity)) {
    if (item === null || item === undefined || item === false) continue;
    if (item instanceof Node) element.append(item);
    else if (typeof item === "object") set(element, item);
    else element.append(String(item));
  }
  return element;
}

function set(element, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked" || key === "disabled" || key === "hidden") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
}

export const button = (text, onclick, more) => make("button", { type: "button", onclick, ...more }, text);

/** A table of rows of cells; a cell is a text or a node. */
export function table(heads, rows, more) {
  return make(
    "div.scroll",
    make(
      "table",
      more ?? {},
      heads.length
        ? make(
          "thead",
          make(
            "tr",
            heads.map((head) =>
              make(head.startsWith("#") ? "th.number" : "th", { scope: "col" }, head.replace(/^#/, ""))
            ),
          ),
        )
        : null,
      make(
        "tbody",
        rows.map((row) =>
          row instanceof Node
            ? row
            : make("tr", row.map((cell, place) => make(heads[place]?.startsWith("#") ? "td.number" : "td", cell)))
        ),
      ),
    ),
  );
}

/** Names and values, one below the other. */
export const facts = (pairs) =>
  make(
    "dl.facts",
    pairs.filter((pair) => pair && pair[1] !== null && pair[1] !== undefined && pair[1] !== "")
      .map(([name, value]) => [make("dt", name), make("dd", value)]),
  );

export const empty = (title, text) => make("div.empty", make("p.title", title), text ? make("p", text) : null);

/** A button that opens a menu; `actions` are functions by their names. */
export function menu(title, actions) {
  const close = () => {
    box.open = false;
  };
  const item = ([name, act]) => {
    const onclick = () => {
      close();
      act();
    };
    return make("button", { type: "button", role: "menuitem", onclick }, name);
  };
  const box = make(
    "details.menu",
    make("summary", { role: "button" }, title),
    make("div", { role: "menu" }, Object.entries(actions).map(item)),
  );
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !box.open) return;
    event.stopPropagation();
    close();
    box.firstChild.focus();
  });
  box.addEventListener("focusout", (event) => box.contains(event.relatedTarget) || setTimeout(close, 150));
  return box;
}

// Numbers and times

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(count) {
  if (!Number.isFinite(count)) return "";
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) {
    count /= 1024;
    unit += 1;
  }
  return (unit === 0 ? count : count < 10 ? count.toFixed(1) : Math.round(count)) + " " + units[unit];
}

export function duration(milliseconds) {
  if (!Number.isFinite(milliseconds)) return "";
  if (milliseconds < 1) return Math.round(milliseconds * 1000) + " µs";
  if (milliseconds < 100) return milliseconds.toFixed(1) + " ms";
  if (milliseconds < 1000) return Math.round(milliseconds) + " ms";
  if (milliseconds < 60000) return (milliseconds / 1000).toFixed(milliseconds < 10000 ? 2 : 1) + " s";
  if (milliseconds < 3600000) {
    return Math.floor(milliseconds / 60000) + " min " + Math.round(milliseconds % 60000 / 1000) + " s";
  }
  const hours = Math.floor(milliseconds / 3600000);
  if (hours < 48) return hours + " h " + Math.floor(milliseconds % 3600000 / 60000) + " min";
  return Math.floor(hours / 24).toLocaleString() + " days";
}

const two = (number) => String(number).padStart(2, "0");

/** The local time of an RFC 3339 time: `14:03:07.120`. */
export function clock(text) {
  const date = new Date(text);
  if (isNaN(date)) return "";
  return two(date.getHours()) + ":" + two(date.getMinutes()) + ":" + two(date.getSeconds()) + "." +
    String(date.getMilliseconds()).padStart(3, "0");
}

export const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone + " (UTC" + offset() + ")";

function offset() {
  const minutes = -new Date().getTimezoneOffset();
  return (minutes < 0 ? "−" : "+") + two(Math.floor(Math.abs(minutes) / 60)) + ":" + two(Math.abs(minutes) % 60);
}

export function fullTime(text) {
  const date = new Date(text);
  if (isNaN(date)) return "";
  return date.getFullYear() + "-" + two(date.getMonth() + 1) + "-" + two(date.getDate()) + " " + clock(text) + ", " +
    zone();
}

export const statusClass = (row) =>
  row.state === "open" && !row.status ? "s0" : row.fault && !row.status ? "s5" : "s" + String(row.status ?? 0)[0];

// Feedback

let toastTimer = 0;

/** Shows a text for a while; with `action`, a `[label, function]`, also a button, for `time` milliseconds. */
export function toast(text, action = null, time = 4000) {
  const box = document.getElementById("toast");
  const hide = () => box.classList.remove("shown");
  const act = () => {
    hide();
    action[1]();
  };
  box.replaceChildren(text, ...(action ? [" ", button(action[0], act)] : []));
  box.classList.add("shown");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(hide, time);
}

export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    toast(what + " copied");
  } catch {
    // Without permission, or not on a secure origin.
    const box = make("textarea.off", { value: text, "aria-hidden": "true" });
    document.body.append(box);
    box.select();
    const isDone = document.execCommand("copy");
    box.remove();
    toast(isDone ? what + " copied" : "the browser does not allow to copy");
  }
}

export function save(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** A dialog with a form. `done` gets the form when it is sent; what it throws is shown, and the dialog stays. */
export function dialog(title, body, done, label = "OK") {
  const mistake = make("p.mistake", { role: "alert" });
  const form = make(
    "form",
    {
      method: "dialog",
      onsubmit: async (event) => {
        event.preventDefault();
        mistake.textContent = "";
        try {
          await done?.(form);
          box.close();
        } catch (error) {
          mistake.textContent = error.message;
        }
      },
    },
    make("h2", title),
    body,
    mistake,
    make(
      "menu",
      done ? button("Cancel", () => box.close()) : null,
      make("button.primary", { type: "submit" }, done ? label : "Close"),
    ),
  );
  const box = make("dialog", { "aria-label": title, onclose: () => box.remove() }, form);
  document.body.append(box);
  box.showModal();
  return box;
}

/** A labelled field of a form. */
export const field = (label, input, hint) =>
  make("label.field", make("span", label), input, hint ? make("small", hint) : null);
