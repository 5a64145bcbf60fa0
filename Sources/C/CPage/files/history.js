// Undo and redo. A state is the hash of the location and the local file beside it.

/** Changes of the same parameters within this time, such as a slider's, are one step. */
const ONE_STEP = 1000;
const KEPT = 200;

export class History {
  #states = [];
  #place = -1;
  #last = { names: "", time: 0 };
  #changed;

  /** `changed` is called with whether there is something to undo, and to redo. */
  constructor(changed) {
    this.#changed = changed;
  }

  add(state) {
    const current = this.#states[this.#place];
    if (current?.hash === state.hash && current.file === state.file) return;
    const now = performance.now();
    const names = current ? differing(current, state) : "";
    const isOneStep = names !== "" && names === this.#last.names && now - this.#last.time < ONE_STEP;
    this.#last = { names, time: now };
    if (!isOneStep) this.#place += 1;
    this.#states.splice(this.#place, Infinity, state);
    if (this.#states.length > KEPT) {
      this.#states.shift();
      this.#place -= 1;
    }
    this.#tell();
  }

  /** Moves one step back (-1) or forward (1). Returns the state there, or `null` if there is none. */
  move(step) {
    const state = this.#states[this.#place + step];
    if (!state) return null;
    this.#place += step;
    this.#last = { names: "", time: 0 };
    this.#tell();
    return state;
  }

  #tell() {
    this.#changed(this.#place > 0, this.#place < this.#states.length - 1);
  }
}

/** Returns the names of the parameters in which two states differ. */
function differing(one, other) {
  const [before, after] = [one, other].map(({ hash }) => new URLSearchParams(hash.slice(1)));
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].filter((name) => before.get(name) !== after.get(name)).sort().join(" ");
}
