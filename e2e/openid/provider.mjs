// An OpenID provider on loopback. A user NAME.GROUP is a member of GROUP.
// Arguments: the redirect URIs of its only client, the public client `portal`. Prints its issuer
// when it listens.
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: 'portal',
      token_endpoint_auth_method: 'none',
      redirect_uris: process.argv.slice(2),
    }],
    claims: { openid: ['sub'], groups: ['groups'] },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, groups: [id.split('.')[1]] }) }),
  });
  server.on('request', provider.callback());
  console.log(issuer);
});
