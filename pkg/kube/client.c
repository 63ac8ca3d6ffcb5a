/* SPDX-License-Identifier: Apache-2.0 */
/* The client: who we are towards the server, and its pools. */
#include "pkg/kube/client.h"

#include <errno.h>
#include <string.h>

#include "pkg/kube/client-internal.h"
#include "pkg/kube/config-internal.h"

/* A server name for TLS that is not the address: the URL has the name, the connection goes to the
 * address. */
static int set_address(struct weft_kube_client *client, struct weft_error *err)
{
    const struct weft_kube_config *c = client->config;
    if (c->tls_server_name == NULL) {
        client->url_base = weft_strdup(c->server);
        return client->url_base != NULL ? 0 : weft_err_nomem(err);
    }
    const char *rest = strchr(c->server + strlen("https://"), '/');
    client->url_base =
        weft_asprintf("https://%s:%s%s", c->tls_server_name, c->port, rest != NULL ? rest : "");
    weft_autofree char *to =
        weft_asprintf(strchr(c->host, ':') != NULL ? "%s:%s:[%s]:%s" : "%s:%s:%s:%s",
                      c->tls_server_name, c->port, c->host, c->port);
    client->connect_to = to != NULL ? curl_slist_append(NULL, to) : NULL;
    return client->url_base != NULL && client->connect_to != NULL ? 0 : weft_err_nomem(err);
}

int weft_kube_client_new(struct weft_loop *loop, struct weft_kube_config *config,
                         const char *program, struct weft_kube_client **ret_client,
                         struct weft_error *err)
{
    weft_auto(weft_kube_client_free) struct weft_kube_client *client =
        weft_calloc(1, sizeof(*client));
    if (client == NULL) {
        weft_kube_config_free(config);
        return weft_err_nomem(err);
    }
    client->magic = WEFT_KUBE_CLIENT_MAGIC;
    client->loop = loop;
    client->pools.loop = loop;
    client->config = config;
    client->program = weft_strdup(program);
    client->user_agent = weft_asprintf("%s/%s", program, WEFT_VERSION);
    if (client->program == NULL || client->user_agent == NULL) {
        return weft_err_nomem(err);
    }
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) { /* counted: once per client is right */
        return weft_err_set(err, -EIO, WEFT_ERR_CURL, "libcurl cannot start");
    }
    const int rc = set_address(client, err);
    if (rc == 0) {
        *ret_client = weft_steal(&client);
    }
    return rc;
}

void weft_kube_client_free(struct weft_kube_client *client)
{
    if (client == NULL) {
        return;
    }
    WEFT_CHECK(client, WEFT_KUBE_CLIENT_MAGIC);
    weft_web_pools_done(&client->pools);
    curl_slist_free_all(client->connect_to);
    weft_kube_config_free(client->config);
    weft_free(client->program);
    weft_free(client->user_agent);
    weft_free(client->url_base);
    client->magic = 0;
    weft_free(client);
}

const struct weft_kube_config *weft_kube_client_config(const struct weft_kube_client *client)
{
    return client->config;
}

struct weft_loop *weft_kube_client_loop(const struct weft_kube_client *client)
{
    return client->loop;
}

void weft_kube_client_stats(const struct weft_kube_client *client, struct weft_kube_stats *ret)
{
    *ret = client->stats;
}
