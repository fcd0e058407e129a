import { Alert, Button } from '@mantine/core';
import { Refused, words } from '../api/problem';
import { Icon } from './Icon';

interface Props {
  title: string;
  error: unknown;
  again?: () => void;
}

/** An error with the server's message, and the request's id for a search in the logs. */
export function ProblemAlert({ title, error, again }: Props) {
  const id = error instanceof Refused ? error.problem.requestId : undefined;
  return (
    <Alert color="red" variant="light" title={title} icon={<Icon name="alert" />} role="alert">
      <p className="words">{words(error)}</p>
      {(id || again) && (
        <p className="small">
          {id && <>Request {id}</>}{' '}
          {again && (
            <Button size="compact-sm" variant="default" onClick={again}>
              Try again
            </Button>
          )}
        </p>
      )}
    </Alert>
  );
}
