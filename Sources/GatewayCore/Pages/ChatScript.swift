/// `/sluice-chat.js`: a small client of Centrifuge's client protocol for pages, without dependencies.
enum ChatScript {
    static let text = #"""
        /**
         * Chat rooms over WebSocket by Centrifuge's client protocol, version 2, in JSON.
         *
         *   import { Chat } from '/sluice-chat.js';
         *   const chat = new Chat('/connection/websocket', { data: { name: 'Ada' } });
         *   chat.onstate = (state, why) => {};        // 'connecting', 'connected', 'disconnected'
         *   const room = chat.subscribe('lobby', {
         *     onmessage: publication => {},           // { data, info, offset }, each once and in order
         *     onjoin: info => {}, onleave: info => {},
         *     onsubscribed: ({ recovered, wasRecovering }) => {},
         *     onerror: error => {},                   // { code, message }
         *   });
         *   await room.publish({ text: 'hello' });
         *   await room.presence();                    // [info]: { client, user, conn_info, chan_info }
         *   await room.history({ limit: 50, reverse: true });   // { publications, offset, epoch }
         *
         * A lost connection is opened again after growing pauses, and its rooms continue where they were: what was
         * published meanwhile arrives first. If the server no longer has it, `onsubscribed` has `recovered: false`.
         * Close codes 3500 to 3999 and 4500 to 4999 mean that the server wants no new connection.
         */
        // A program's handler that throws is reported, and ends nothing here.
        function run(owner, name, ...values) {
          try {
            owner[name]?.(...values);
          } catch (error) {
            globalThis.reportError ? reportError(error) : console.error(error);
          }
        }

        export class Chat {
          /**
           * Connects at once.
           * @param url of a WebSocket; relative to the page, or absolute
           * @param options `token` (text, or a function that returns it or its promise), `data` and `name` for the
           *   connect command, `timeout` of commands and `minDelay` and `maxDelay` of pauses in milliseconds
           */
          constructor(url, options = {}) {
            this.url = new URL(url, globalThis.location?.href);
            this.url.protocol = this.url.protocol.replace('http', 'ws');
            this.options = { timeout: 10000, minDelay: 500, maxDelay: 20000, ...options };
            this.rooms = new Map();
            this.replies = new Map();
            this.outbox = [];
            this.attempt = this.number = 0;
            globalThis.addEventListener?.('online', () => this.timer && this.connect());
            this.connect();
          }

          /** Connects again after `disconnect` or a refusal, or without waiting for the end of a pause. */
          connect() {
            if (this.socket) return;
            this.timer = clearTimeout(this.timer);
            this.#become('connecting');
            const socket = (this.socket = new WebSocket(this.url));
            this.#watch(this.options.timeout);
            socket.onopen = () => this.#introduce(socket);
            socket.onmessage = event => {
              if (socket !== this.socket) return;
              if (this.patience) this.#watch(this.patience);
              for (const line of event.data.split('\n')) if (line) this.#received(JSON.parse(line));
            };
            socket.onclose = event => this.#lost(socket, event.code, event.reason);
          }

          /** Ends the connection for good. */
          disconnect() {
            this.timer = clearTimeout(this.timer);
            this.#lost(this.socket, 3500, 'disconnect called');
          }

          /** Enters a room, now and after each reconnect. The handlers may be changed later. */
          subscribe(channel, handlers = {}) {
            const room = this.rooms.get(channel) ?? new Room(this, channel);
            this.rooms.set(channel, Object.assign(room, handlers));
            if (this.state === 'connected' && !room.inside) room.enter();
            return room;
          }

          /** Sends a command, like `call('rpc', { method, data })`, and returns the promise of its result. */
          call(method, parameters) {
            // The server ends a connection whose first command is not `connect`.
            const isReady = this.state === 'connected' || method === 'connect';
            if (!isReady || this.socket?.readyState !== 1)
              return Promise.reject({ code: 0, message: 'not connected', temporary: true });
            const id = ++this.number;
            this.#send({ id, [method]: parameters });
            return new Promise((resolve, reject) => {
              const fail = message => this.replies.delete(id) && reject({ code: 0, message, temporary: true, wasSent: true });
              const timer = setTimeout(fail, this.options.timeout, 'no reply in time');
              this.replies.set(id, { method, resolve, reject, fail, timer });
            });
          }

          // Commands of one turn leave in one message.
          #send(command) {
            if (this.outbox.push(JSON.stringify(command)) > 1) return;
            queueMicrotask(() => {
              const batch = this.outbox.splice(0).join('\n');
              if (batch && this.socket?.readyState === 1) this.socket.send(batch);
            });
          }

          async #introduce(socket) {
            try {
              const { token, data, name } = this.options;
              const text = typeof token === 'function' ? await token() : token;
              // Another connection may have begun meanwhile, and introduces itself.
              if (socket !== this.socket) return;
              const session = await this.call('connect', { token: text, data, name });
              if (socket !== this.socket) return;
              this.client = session.client;
              this.pongs = session.pong;
              this.attempt = 0;
              this.patience = session.ping ? session.ping * 1000 + 10000 : 0;
              clearTimeout(this.watchdog);
              if (this.patience) this.#watch(this.patience);
              this.#become('connected');
              for (const room of this.rooms.values()) if (!room.inside) room.enter();
            } catch (error) {
              const isFinal = error.code && !error.temporary && error.code !== 109;
              this.#lost(socket, isFinal ? 3500 : 3000, error.message);
            }
          }

          #received(reply) {
            const waiting = this.replies.get(reply.id);
            if (reply.push) this.#pushed(reply.push);
            else if (!reply.id) this.pongs && this.#send({});
            else if (waiting) {
              this.replies.delete(reply.id);
              clearTimeout(waiting.timer);
              reply.error ? waiting.reject(reply.error) : waiting.resolve(reply[waiting.method] ?? {});
            }
          }

          #pushed({ channel, pub, join, leave, unsubscribe, disconnect }) {
            const room = this.rooms.get(channel);
            if (disconnect) this.#lost(this.socket, disconnect.code, disconnect.reason);
            else if (!room) return;
            else if (pub) room.deliver(pub);
            else if (join) run(room, 'onjoin', join.info);
            else if (leave) run(room, 'onleave', leave.info);
            else if (unsubscribe) room.left(unsubscribe);
          }

          // Without a sign from the server in that time, the connection counts as lost.
          #watch(milliseconds) {
            clearTimeout(this.watchdog);
            this.watchdog = setTimeout(() => this.#lost(this.socket, 3000, 'no sign of the server'), milliseconds);
          }

          #lost(socket, code, reason) {
            if (socket !== this.socket) return;
            clearTimeout(this.watchdog);
            this.socket = undefined;
            this.patience = 0;
            this.outbox = [];
            for (const room of this.rooms.values()) room.inside = false;
            if (socket) {
              socket.onclose = socket.onmessage = null;
              socket.close();
            }
            for (const waiting of [...this.replies.values()]) {
              clearTimeout(waiting.timer);
              waiting.fail('connection lost');
            }
            if ((code >= 3500 && code < 4000) || (code >= 4500 && code < 5000)) {
              return this.#become('disconnected', { code, reason });
            }
            const { minDelay, maxDelay } = this.options;
            const most = Math.min(maxDelay, minDelay * 2 ** this.attempt++);
            this.timer = setTimeout(() => this.connect(), most * (0.5 + Math.random() / 2));
            this.#become('connecting', { code, reason });
          }

          #become(state, why) {
            this.state = state;
            run(this, 'onstate', state, why);
          }
        }

        /** A room that a chat has entered. */
        export class Room {
          constructor(chat, channel) {
            Object.assign(this, { chat, channel, inside: false });
          }

          /** Sends data, any value of JSON, to all in the room. */
          publish(data) {
            return this.chat.call('publish', { channel: this.channel, data });
          }

          async presence() {
            return Object.values((await this.chat.call('presence', { channel: this.channel })).presence ?? {});
          }

          history(options) {
            return this.chat.call('history', { channel: this.channel, ...options });
          }

          async unsubscribe() {
            if (!this.isWanted) return;
            this.chat.rooms.delete(this.channel);
            // Without a connection the room is left already.
            if (this.chat.state === 'connected') await this.chat.call('unsubscribe', { channel: this.channel });
          }

          // Whether the chat still has this room.
          get isWanted() {
            return this.chat.rooms.get(this.channel) === this;
          }

          async enter() {
            const { channel, epoch, offset } = this;
            const place = epoch === undefined ? {} : { recover: true, epoch, offset };
            // Or on the way: entering twice is an error.
            this.inside = true;
            // Publications behind the reply, in the same message, come before its promise is settled.
            const early = (this.early = []);
            try {
              const result = await this.chat.call('subscribe', { channel, ...place });
              if (!this.isWanted) return;
              this.early = undefined;
              const recovered = Boolean(result.recovered);
              if (!recovered) this.offset = result.offset ?? 0;
              for (const publication of result.publications ?? []) this.deliver(publication);
              this.offset = Math.max(this.offset ?? 0, result.offset ?? 0);
              if (result.recoverable) this.epoch = result.epoch ?? '';
              run(this, 'onsubscribed', { recovered, wasRecovering: 'recover' in place });
              for (const publication of early) this.deliver(publication);
            } catch (error) {
              this.inside = false;
              this.early = undefined;
              if (!this.isWanted) return;
              // 112: the place is no longer known.
              if (error.code === 112) this.epoch = undefined;
              else if (!error.temporary) return run(this, 'onerror', error);
              if (this.chat.state === 'connected') setTimeout(() => this.again(), this.chat.options.minDelay);
            }
          }

          again() {
            if (this.chat.state === 'connected' && this.isWanted && !this.inside) this.enter();
          }

          deliver(publication) {
            if (this.early) return this.early.push(publication);
            if (publication.offset) {
              if (publication.offset <= (this.offset ?? 0)) return;
              this.offset = publication.offset;
            }
            run(this, 'onmessage', publication);
          }

          // 2500 and above: the server advises to enter again.
          left({ code, reason }) {
            this.inside = false;
            if (code >= 2500) return this.again();
            this.chat.rooms.delete(this.channel);
            run(this, 'onerror', { code, message: reason });
          }
        }

        """#
}
