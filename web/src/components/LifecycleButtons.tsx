import { Button } from '@mantine/core';
import { useState } from 'react';
import type { Environment } from '../api/schema';
import { requestsOf } from '../kinds/lifecycle';
import { useRequests } from '../state/requests';
import { ExtendDialog } from './ExtendDialog';
import { Icon } from './Icon';
import { StopDialog } from './StopDialog';

/** Extend, Stop and Start, as far as they have an effect. */
export function LifecycleButtons({ environment }: { environment: Environment }) {
  const may = requestsOf(environment);
  const { sent, send } = useRequests(environment);
  const [open, setOpen] = useState<'extend' | 'stop'>();
  const close = () => setOpen(undefined);
  return (
    <>
      {may.extend && (
        <Button
          variant="default"
          leftSection={<Icon name="clock" size={16} />}
          onClick={() => setOpen('extend')}
        >
          Extend
        </Button>
      )}
      {may.stop && (
        <Button
          variant="default"
          leftSection={<Icon name="pause" size={16} />}
          disabled={sent !== undefined}
          onClick={() => setOpen('stop')}
        >
          {sent === 'stop' ? 'Stopping…' : 'Stop'}
        </Button>
      )}
      {may.start && (
        <Button
          leftSection={<Icon name="play" size={16} />}
          disabled={sent !== undefined}
          onClick={() => send('start')}
        >
          {sent === 'start' ? 'Starting…' : 'Start'}
        </Button>
      )}
      <ExtendDialog environment={environment} opened={open === 'extend'} close={close} />
      <StopDialog environment={environment} opened={open === 'stop'} close={close} />
    </>
  );
}
