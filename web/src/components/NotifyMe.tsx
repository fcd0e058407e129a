import { Button } from '@mantine/core';
import { useState } from 'react';

/** Asks the browser for notifications, so that the user can leave the page until it is ready. */
export function NotifyMe() {
  const [permission, setPermission] = useState(() =>
    'Notification' in window ? Notification.permission : 'denied',
  );
  if (permission !== 'default')
    return permission === 'granted' ? (
      <p className="small">Your browser notifies you when it is ready.</p>
    ) : null;
  return (
    <Button
      variant="default"
      size="compact-sm"
      onClick={() => void Notification.requestPermission().then(setPermission)}
    >
      Notify me when it is ready
    </Button>
  );
}
