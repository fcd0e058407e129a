import { Button } from '@mantine/core';
import { ProblemAlert } from '../components/ProblemAlert';
import { Brand } from '../components/Frame';
import { Picture, PICTURED } from '../kinds/metadata';
import type { Told } from '../state/session';

/** The URL that starts signing in. It returns to the current page. */
export function signIn(): string {
  const here = window.location.pathname + window.location.search;
  return `/auth/sign-in?return=${encodeURIComponent(here)}`;
}

/**
 * The page for signing in. `told` is an error of signing in or out. `elsewhere` means that the user
 * has just signed out in another place.
 */
export function SignInPage({ told, elsewhere }: { told?: Told; elsewhere?: true }) {
  return (
    <main className="sign-in">
      <title>Sign in · Paved Road</title>
      <Brand />
      <h1>Your own environments in minutes</h1>
      <p className="lead">
        Choose what you need, preview it, follow its progress and connect. The portal creates
        everything with your own permissions.
      </p>
      <div className="sign-in-pictures">
        {PICTURED.map((api) => (
          <Picture key={api} api={api} size={52} />
        ))}
      </div>
      {told && <ProblemAlert {...told} />}
      {elsewhere && <p role="status">You signed out in another tab.</p>}
      <Button component="a" href={signIn()} size="lg">
        Sign in
      </Button>
      <p className="small">You sign in with your organisation’s account and then return here.</p>
    </main>
  );
}
