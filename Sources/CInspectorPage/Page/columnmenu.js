// The box in which the user chooses the columns of the list.
import { button, make } from "./dom.js";
import { choices } from "./state.js";
import { allColumns, usual } from "./columns.js";

/** The keys of the chosen columns. */
export const chosenColumns = () => new Set(choices.read("columns", usual));
/** Whether the user has chosen them. */
export const hasChosen = () => choices.read("columns", null) !== null;

export class ColumnMenu {
  /** `onChange` is called after each choice. */
  constructor(onChange) {
    this.onChange = onChange;
    this.box = null;
    this.button = button("columns", () => this.toggle(), { "aria-haspopup": "true", "aria-expanded": "false" });
  }

  get isOpen() {
    return this.box !== null;
  }

  toggle() {
    this.button.setAttribute("aria-expanded", String(!this.isOpen));
    if (this.isOpen) {
      this.box.remove();
      this.box = null;
      return;
    }
    this.box = this.makeBox(chosenColumns());
    this.button.after(this.box);
    this.box.querySelector("input").focus();
  }

  makeBox(chosen) {
    return make(
      "fieldset.popover",
      { onkeydown: (event) => this.key(event) },
      make("legend", "Columns"),
      allColumns.filter(({ key }) => key !== "where").map((column) =>
        make("label", this.checkbox(column, chosen), column.key === "id" ? "Number" : column.title)
      ),
    );
  }

  checkbox(column, chosen) {
    const choose = (event) => {
      if (event.target.checked) chosen.add(column.key);
      else chosen.delete(column.key);
      if (!chosen.size) return;
      choices.write("columns", [...chosen]);
      this.onChange();
    };
    return make("input", { type: "checkbox", checked: chosen.has(column.key), onchange: choose });
  }

  key(event) {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    this.toggle();
    this.button.focus();
  }
}
