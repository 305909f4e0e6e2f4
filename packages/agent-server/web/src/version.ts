// The service worker, and the news that the server has another version of the page.

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): { createScriptURL(url: string): string };
}

const WORKER = "/page/worker.js";

let listener: ((reload: () => void) => void) | undefined;

/** Keep the shell of the page for times without a network; *found* is called when another version is ready. */
export function watchVersion(found: (reload: () => void) => void): void {
  const isWatched = listener !== undefined; // the page is drawn anew in another language, the worker stays
  listener = found;
  if (isWatched || !("serviceWorker" in navigator) || !isSecureContext) return;
  // A worker that takes over while the page is open means that somebody asked for it.
  let isAsked = false;
  navigator.serviceWorker.addEventListener("controllerchange", () => isAsked && location.reload());
  const offer = (worker: ServiceWorker): void =>
    listener?.(() => {
      isAsked = true;
      worker.postMessage("take over");
    });
  void navigator.serviceWorker.register(address(), { scope: "/" }).then((registration) => {
    if (registration.waiting && navigator.serviceWorker.controller) offer(registration.waiting);
    registration.addEventListener("updatefound", () => {
      const worker = registration.installing;
      worker?.addEventListener("statechange", () => {
        if (worker.state === "installed" && navigator.serviceWorker.controller) offer(worker);
      });
    });
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") registration.update().catch(() => undefined);
    });
  }, () => undefined); // private windows refuse it, and the page works without
}

/** Return the address of the worker in the type that the policy of the page wants. */
function address(): string {
  const { trustedTypes } = window as unknown as { trustedTypes?: TrustedTypes };
  const policy = trustedTypes?.createPolicy("worker", { createScriptURL: (url) => (url === WORKER ? url : "") });
  return policy === undefined ? WORKER : policy.createScriptURL(WORKER);
}
