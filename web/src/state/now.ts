import { atom } from 'jotai';

const tick = atom(Date.now());

/** The time, a few seconds old at most: all relative times move together. */
export const nowAtom = atom((get) => get(tick));

tick.onMount = (set) => {
  set(Date.now());
  const timer = setInterval(() => set(Date.now()), 5_000);
  return () => clearInterval(timer);
};
