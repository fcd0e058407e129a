import { atom } from 'jotai';

/** A message about an event. It stays visible until the user closes it. */
export interface Notice {
  id: number;
  tone: 'good' | 'bad';
  title: string;
  detail?: string;
}

let next = 0;

export const noticesAtom = atom<readonly Notice[]>([]);

/** The last arrival while the window was in the background. The title of the window shows it. */
export const arrivalAtom = atom('');

/** Shows a notice. At most four are shown at once. */
export const tellAtom = atom(null, (_get, set, notice: Omit<Notice, 'id'>) => {
  const id = ++next;
  set(noticesAtom, (before) => [...before.slice(-3), { ...notice, id }]);
});

/** Removes a notice. */
export const readAtom = atom(null, (_get, set, id: number) => {
  set(noticesAtom, (before) => before.filter((notice) => notice.id !== id));
});
