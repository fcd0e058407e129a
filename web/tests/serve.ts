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
  stuck(
    world,
    add('unified-environment', 'ready', 'spring-sale', 'team-shop', 'ada', 60 * 24 * 30),
  );
  return world;
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
    else if (
      view.labels['made'] !== 'before' &&
      Date.now() - Date.parse(view.createdAt ?? '') < 180_000 &&
      !view.ready
    )
      grow(world, api, view);
  }
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
