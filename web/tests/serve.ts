import { existsSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import type { Environment } from '../src/api/schema';
import type { Api } from './data.ts';
import { goldenOf } from './golden.ts';
import { progressOf } from './stored.ts';
import { World } from './world.ts';

type Next = () => void;

/** The headers that the portal sends with every page. The pages must work with them. */
export function protective(_: IncomingMessage, response: ServerResponse, next: Next): void {
  response.setHeader(
    'content-security-policy',
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  );
  next();
}

/**
 * Serves built files as the portal does: compressed, and cached permanently, because a changed file
 * has another name.
 */
export function packed(request: IncomingMessage, response: ServerResponse, next: Next): void {
  const name = /^\/assets\/([\w.-]+\.(js|css))$/.exec(request.url ?? '');
  const file = join(import.meta.dirname, '..', 'dist', 'assets', name?.[1] ?? '');
  if (!name || !existsSync(file)) {
    next();
    return;
  }
  response.setHeader('content-type', name[2] === 'js' ? 'text/javascript' : 'text/css');
  response.setHeader('content-encoding', 'gzip');
  response.setHeader('cache-control', 'public, max-age=31536000, immutable');
  response.end(gzipSync(readFileSync(file)));
}

/**
 * A fake portal with users and environments that change over time, as middleware of Vite's servers.
 */
export function middleware() {
  const world = peopled();
  setInterval(() => step(world), 2000).unref();
  setInterval(() => world.beat(), 15_000).unref();
  return (incoming: IncomingMessage, outgoing: ServerResponse, next: Next): void => {
    const url = incoming.url ?? '/';
    if (url.startsWith('/auth/sign-in')) {
      world.me ??= new World().me;
      outgoing
        .writeHead(303, {
          location: new URL(url, 'http://world').searchParams.get('return') ?? '/',
        })
        .end();
    } else if (/^\/(api|auth)\//.test(url)) {
      void pass(world, incoming, outgoing);
    } else {
      next();
    }
  };
}

async function pass(
  world: World,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  outgoing.on('close', () => gone.abort());
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const { method = 'GET' } = incoming;
  const body = chunks.length > 0 ? Buffer.concat(chunks).toString() : undefined;
  const last = incoming.headers['last-event-id'];
  const headers = last ? { 'last-event-id': String(last) } : undefined;
  const answer = await world.fetch(
    new Request(new URL(incoming.url!, 'http://world'), {
      method,
      body,
      headers,
      signal: gone.signal,
    }),
  );
  outgoing.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body)
    Readable.fromWeb(answer.body as never)
      .on('error', () => outgoing.end())
      .pipe(outgoing);
  else outgoing.end();
}

/** The initial environments. */
function peopled(): World {
  const world = new World();
  const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
  const ahead = (minutes: number) => ago(-minutes);
  world.follows = true;
  world.ttl = 8 * 3600;
  const add = (
    api: Api,
    stage: 'ready' | 'half-way' | 'failing' | 'nothing',
    name: string,
    namespace: string,
    owner: string,
    minutes: number,
  ) =>
    world.add(api, { stage, name, namespace, owner: `${owner}@acme.io`, createdAt: ago(minutes) });
  add('gpu-workspace', 'ready', 'ada', 'team-vision', 'ada', 60 * 26);
  add('gpu-workspace', 'failing', 'ada-large', 'team-vision', 'ada', 44);
  add('unified-environment', 'ready', 'checkout', 'team-shop', 'ada', 60 * 24 * 9);
  add('virtual-environment', 'half-way', 'preview', 'team-shop', 'ada', 3);
  add('application-environment', 'ready', 'shop', 'team-shop', 'ada', 60 * 24 * 40);
  add('stock-pool', 'half-way', 'render', 'team-vision', 'ada', 8);
  add('gpu-workspace', 'failing', 'grace', 'team-vision', 'grace', 61);
  add('gpu-workspace', 'failing', 'edsger', 'team-robotics', 'edsger', 12);
  add('application-environment', 'failing', 'billing', 'team-billing', 'barbara', 130);
  add('unified-environment', 'failing', 'returns', 'team-shop', 'grace', 300);
  add('virtual-environment', 'failing', 'e2e-main', 'team-platform', 'linus', 22);
  add('virtual-environment', 'ready', 'e2e-release', 'team-platform', 'linus', 60 * 24 * 3);
  add('stock-pool', 'ready', 'inference', 'team-robotics', 'edsger', 60 * 24 * 12);
  add('unified-environment', 'ready', 'search', 'team-shop', 'barbara', 60 * 24 * 2);
  add('gpu-workspace', 'ready', 'alan', 'team-robotics', 'alan', 60 * 5);
  add('application-environment', 'half-way', 'ledger', 'team-billing', 'barbara', 95);
  lived(world, ago, ahead);
  stuck(
    world,
    add('unified-environment', 'ready', 'spring-sale', 'team-shop', 'ada', 60 * 24 * 30),
  );
  return world;
}

/** Gives ends, power and prices to environments. Some have no price. */
function lived(
  world: World,
  ago: (minutes: number) => string,
  ahead: (minutes: number) => string,
): void {
  const change = (name: string, over: Partial<Environment>) => {
    const found = [...world.environments.values()].find(({ view }) => view.name === name);
    if (found) world.change(found.view, over);
  };
  const runs = { power: 'Running', lifecycle: { maximum: '14d' } };
  for (const { view } of world.environments.values()) change(view.name, runs);
  const gpu = { hourlyUSD: '0.542', stoppedHourlyUSD: '0.011', asOf: '2026-07-20' };
  const end = ahead(25);
  change('ada', {
    price: gpu,
    lifecycle: {
      expiresAt: end,
      maximum: '14d',
      onExpiry: 'Stop',
      ttlFrom: 'Claim',
      warnedAt: ago(5),
    },
    expiring: {
      reason: 'Expiring',
      message: `ada is stopped at ${end}. To renew it, run: paved extend ada 4h`,
    },
  });
  change('alan', {
    power: 'Stopped',
    phase: 'Stopped',
    message: 'the environment is stopped',
    endpoint: undefined,
    price: gpu,
    lifecycle: {
      expiresAt: ago(180),
      deletesAt: ahead(60 * 24 * 13),
      onExpiry: 'Stop',
      maximum: '14d',
      stoppedAt: ago(180),
      stopReason: 'Expired',
    },
  });
  change('checkout', {
    price: { hourlyUSD: '0.188', stoppedHourlyUSD: '0.094' },
    lifecycle: { expiresAt: ahead(60 * 24 * 4 + 90), onExpiry: 'Stop', ttlFrom: 'Settings' },
  });
  change('shop', { price: { hourlyUSD: '1.402', stoppedHourlyUSD: '0.134', asOf: '2026-01-01' } });
  change('inference', { price: { hourlyUSD: '4.8', stoppedHourlyUSD: '0' } });
  change('e2e-release', {
    cannotStop: 'a virtual cluster cannot be stopped',
    price: { hourlyUSD: '0.12' },
    lifecycle: { expiresAt: ahead(100), onExpiry: 'Stop' },
    expiring: {
      reason: 'Expiring',
      message:
        'e2e-release is marked as expired at its end. To renew it, run: paved extend e2e-release 4h',
    },
  });
}

/** A half-deleted environment. Its cloud blocks the rest, so that a deletion is always visible. */
function stuck(world: World, view: Environment): void {
  const kept = view.parts.filter(({ kind }) => kind !== 'Usage').slice(0, 3);
  const parts = kept.map((part) => ({
    ...part,
    ready: false,
    reason: 'Deleting',
    message: 'DependencyViolation: resource has a dependent object',
  }));
  const of = Number(progressOf(view.parts).split('/')[1]);
  const message = `is being deleted: ${parts.length} of ${of} resources are left`;
  world.change(view, {
    deletedAt: new Date().toISOString(),
    phase: 'Deleting',
    ready: false,
    parts,
    message,
    progress: `${of - parts.length}/${of}`,
    labels: { ...view.labels, stuck: 'yes' },
  });
}

/** Advances all environments. New resources become ready, and deleted resources disappear. */
function step(world: World): void {
  for (const { api, view } of [...world.environments.values()]) {
    if (view.labels['stuck']) continue;
    if (view.deletedAt) shrink(world, view);
    else if (view.power === 'Stopping' || view.power === 'Starting') turned(world, view);
    else if (
      view.labels['made'] !== 'before' &&
      Date.now() - Date.parse(view.createdAt ?? '') < 180_000 &&
      !view.ready
    )
      grow(world, api, view);
  }
}

/** A machine that was asked to stop or start has done so. */
function turned(world: World, view: Environment): void {
  const { expiresAt: _, stoppedAt: __, stopReason: ___, ...lifecycle } = view.lifecycle ?? {};
  const now = Date.now();
  const isOff = view.power === 'Stopping';
  world.change(view, {
    power: isOff ? 'Stopped' : 'Running',
    phase: isOff ? 'Stopped' : 'Ready',
    ready: true,
    message: isOff ? 'the environment is stopped' : 'everything is ready',
    expiring: undefined,
    lifecycle: isOff
      ? { ...view.lifecycle, stoppedAt: new Date(now).toISOString(), stopReason: 'Requested' }
      : { ...lifecycle, expiresAt: new Date(now + 8 * 3_600_000).toISOString() },
  });
}

function grow(world: World, api: Api, view: Environment): void {
  const goal = goldenOf(api, 'ready');
  const next = view.parts.findIndex(({ ready }) => !ready);
  const now = new Date().toISOString();
  const parts = view.parts.map((part, index) => {
    if (index === next)
      return {
        ...(goal.parts.find(({ slot }) => slot === part.slot) ?? part),
        ready: true,
        reason: undefined,
        message: undefined,
        since: now,
      };
    return part;
  });
  const left = parts.filter(({ ready }) => !ready);
  const done = left.length === 0;
  const endpoint = Object.values(goal.status).find(
    (value) => typeof value === 'string' && /^(https?:|ssh )/.test(value),
  ) as string | undefined;
  const message = done
    ? parts.length === 1
      ? 'the only resource is ready'
      : `all ${parts.length} resources are ready`
    : `${left[0]!.slot} (${left[0]!.kind}): is being created`;
  const { phase: _, progress: __, ...status } = goal.status;
  world.change(view, {
    parts,
    progress: progressOf(parts),
    phase: done ? 'Ready' : 'Provisioning',
    ready: done,
    message,
    ...(done ? { endpoint, status } : {}),
  });
}

function shrink(world: World, view: Environment): void {
  const of = Number(view.labels['of'] ?? view.parts.length);
  const parts = view.parts.slice(1);
  if (view.parts.length === 0) return world.remove(view);
  const message = `is being deleted: ${parts.length} of ${of} resources are left`;
  world.change(view, {
    parts,
    message,
    progress: `${of - parts.length}/${of}`,
    labels: { ...view.labels, of: String(of) },
  });
}
