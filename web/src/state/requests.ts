import { atom, useAtom, useSetAtom } from 'jotai';
import { useCallback, useEffect } from 'react';
import { answer, api } from '../api/client';
import { mayBeDone, words } from '../api/problem';
import type { Environment, Extension, Requested } from '../api/schema';
import { placeOf } from '../kinds/paths';
import { exactly } from '../kinds/format';
import { tellAtom } from './notices';

export type Verb = 'stop' | 'start';

/** A request that was sent, and the power of the environment at that time. */
interface Sent {
  verb: Verb;
  power: string | null | undefined;
}

/** The requests that were sent, by the uid of the environment. */
const sentAtom = atom<Record<string, Sent>>({});

/** How long a request is shown before the cluster shows its effect, in milliseconds. */
const BELIEF = 30_000;

const STARTS = 'The environment starts again.';

const DOING: Record<Verb, string> = { stop: 'stopped', start: 'started' };

/**
 * Requests to stop, start, extend and keep an environment. `sent` is the request that has no visible
 * effect in the cluster yet.
 */
export function useRequests(environment: Environment): {
  sent: Verb | undefined;
  send: (verb: Verb) => void;
  extend: (extension: Extension) => Promise<void>;
  /** Removes the end. */
  keep: () => Promise<void>;
} {
  const { uid, name, power } = environment;
  const [all, setAll] = useAtom(sentAtom);
  const tell = useSetAtom(tellAtom);
  const forget = useCallback(
    () =>
      setAll((before) => Object.fromEntries(Object.entries(before).filter(([of]) => of !== uid))),
    [setAll, uid],
  );
  const last = all[uid];
  const sent = last && last.power === power ? last.verb : undefined;
  useEffect(() => {
    if (!last) return;
    const timer = setTimeout(forget, BELIEF);
    return () => clearTimeout(timer);
  }, [last, forget]);
  const path = { params: { path: placeOf(environment) } };
  const send = (verb: Verb) => {
    setAll((before) => ({ ...before, [uid]: { verb, power } }));
    const asked =
      verb === 'stop'
        ? api.POST('/api/v1/environments/{namespace}/{kind}/{name}/stop', { ...path, body: {} })
        : api.POST('/api/v1/environments/{namespace}/{kind}/{name}/start', { ...path, body: {} });
    answer(asked).then(
      ({ changed, clockAhead }: Requested) => {
        if (!changed) forget();
        const title = changed
          ? `${name} is being ${DOING[verb]}`
          : `${name} is already ${DOING[verb]}`;
        tell({ tone: 'good', title, detail: late(clockAhead) });
      },
      (error: unknown) => {
        forget();
        const title = mayBeDone(error)
          ? `We could not confirm that ${name} is being ${DOING[verb]}`
          : `Could not ${verb} ${name}`;
        tell({ tone: 'bad', title, detail: words(error) });
      },
    );
  };
  const extend = async (body: Extension) => {
    const { expiresAt, changed, cappedBy, starts, clockAhead } = await answer(
      api.POST('/api/v1/environments/{namespace}/{kind}/{name}/extend', { ...path, body }),
    );
    const end = exactly(Date.parse(expiresAt ?? ''));
    const told = [
      changed ? '' : 'Nothing was changed.',
      cappedBy ? `The maximum in Settings is ${cappedBy}.` : '',
      starts ? STARTS : '',
      late(clockAhead) ?? '',
    ];
    const title = changed ? `${name} ends at ${end}` : `${name} already ends at ${end}`;
    tell({ tone: 'good', title, detail: told.filter(Boolean).join(' ') || undefined });
  };
  const keep = async () => {
    const { changed, starts } = await answer(
      api.POST('/api/v1/environments/{namespace}/{kind}/{name}/keep', { ...path, body: {} }),
    );
    const title = changed ? `${name} now has no end` : `${name} already has no end`;
    tell({ tone: 'good', title, detail: starts ? STARTS : undefined });
  };
  return { sent, send, extend, keep };
}

/** A warning about the portal's clock. */
function late(ahead: string | null | undefined): string | undefined {
  return ahead
    ? `The portal’s clock is ${ahead} ahead of the cluster’s, so the request takes effect later.`
    : undefined;
}
