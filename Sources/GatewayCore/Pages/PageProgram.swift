/// The program of the page, with its client of the chat. Names and messages are data: they become text, never markup.
enum PageProgram {
    static let text = ChatScript.text + own

    private static let own = #"""


        const $ = id => document.getElementById(id);

        function element(name, text, className) {
          const made = document.createElement(name);
          if (text !== undefined) made.textContent = text;
          // Text of others has its own direction, and does not turn its surroundings.
          made.dir = 'auto';
          if (className) made.className = className;
          return made;
        }

        // Keeps the newest line in view unless the reader has scrolled up, and at most 500 lines.
        function append(list, item) {
          const log = list.parentElement;
          const follows = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
          list.append(item);
          while (list.children.length > 500) list.firstElementChild.remove();
          if (follows) log.scrollTop = log.scrollHeight;
        }

        function show(id, text, mood = '') {
          const place = $(id);
          place.className = `state ${mood}`;
          if (place.textContent !== text) place.textContent = text;
        }

        // ---- Chat

        let chat, room;
        // Those who are in the room, and the names that they gave with their messages, by connection.
        const people = new Map();
        const names = new Map();

        function stored(key, value) {
          try {
            if (value !== undefined) sessionStorage.setItem(key, value);
            return sessionStorage.getItem(key);
          } catch {
            return null;
          }
        }

        // Anything may be in the place of a text.
        const textOf = value => (typeof value === 'string' ? value : JSON.stringify(value) ?? '');

        const nameOf = info => {
          const name = [names.get(info?.client), info?.conn_info?.name, info?.user].find(one => one && one !== '');
          return textOf(name ?? `guest ${textOf(info?.client).slice(0, 4)}`).slice(0, 60);
        };

        function showPeople() {
          const present = [...people.values()].map(nameOf).sort((a, b) => a.localeCompare(b));
          $('people').replaceChildren(...present.map(name => element('li', name)));
        }

        function note(text, name) {
          const item = element('li', text, 'note');
          if (name !== undefined) item.prepend(element('bdi', name));
          append($('messages'), item);
        }

        function showMessage({ data, info }) {
          if (info?.client && data?.name && typeof data.name === 'string') {
            names.set(info.client, data.name);
            showPeople();
          }
          // Each member announces its name on entering, as guests have no other way to.
          if (typeof data?.entered === 'boolean') return data.entered && note(' entered', nameOf(info));
          const isOwn = Boolean(chat.client) && info?.client === chat.client;
          const item = element('li', undefined, isOwn ? 'own' : '');
          item.append(element('strong', textOf(data?.name ?? nameOf(info)).slice(0, 60)), ' ');
          const sent = new Date(typeof data?.sent === 'number' ? data.sent : NaN);
          if (!Number.isNaN(sent.getTime())) {
            const time = element('time', sent.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' }));
            time.dateTime = sent.toISOString();
            item.append(time);
          }
          item.append(element('p', textOf(data?.text ?? data)));
          append($('messages'), item);
        }

        async function entered({ recovered, wasRecovering }) {
          const current = room;
          show('chat-state', 'Connected', 'good');
          if (wasRecovering && !recovered) note('The room does not have all of what you missed: some messages may be missing.');
          try {
            if (!wasRecovering) {
              const { publications = [] } = await current.history({ limit: 50, reverse: true });
              const old = publications.filter(one => one.offset <= current.entryOffset);
              const fresh = [...$('messages').children];
              $('messages').replaceChildren();
              old.reverse().forEach(showMessage);
              $('messages').append(...fresh);
            }
            const present = await current.presence();
            if (current !== room) return;
            people.clear();
            for (const info of present) people.set(info.client, info);
            showPeople();
            await current.publish({ name: $('name').value.trim(), entered: !wasRecovering });
          } catch (error) {
            if (!error.temporary) note(`The room does not tell who is there: ${error.message}.`);
          }
        }

        function enter(channel) {
          chat?.disconnect();
          people.clear();
          names.clear();
          $('messages').replaceChildren();
          chat = new Chat('connection/websocket', { name: 'sluice-page' });
          const own = chat;
          chat.onstate = (state, why) => {
            if (chat !== own) return;
            if (state === 'disconnected') show('chat-state', `Ended by the server: ${why.reason || why.code}`, 'bad');
            else if (state === 'connecting' && why) show('chat-state', 'Connection lost, trying again', 'bad');
            else if (state === 'connecting') show('chat-state', 'Connecting');
          };
          room = chat.subscribe(channel, {
            onmessage: showMessage,
            onjoin: info => {
              people.set(info.client, info);
              showPeople();
            },
            onleave: info => {
              if (!people.delete(info.client)) return;
              showPeople();
              note(' left', nameOf(info));
            },
            onsubscribed(event) {
              this.entryOffset ??= this.offset;
              entered(event);
            },
            onerror: error => show('chat-state', `No entry: ${error.message}`, 'bad'),
          });
          show('chat-state', 'Connecting');
        }

        $('name').value = stored('name') ?? '';
        if (/^#[A-Za-z0-9._-]{1,64}$/.test(location.hash)) $('room').value = location.hash.slice(1);

        $('enter').addEventListener('submit', event => {
          event.preventDefault();
          const name = $('name').value.trim();
          const channel = $('room').value.trim();
          stored('name', name);
          history.replaceState(null, '', `#${channel}`);
          $('room-title').textContent = `Room ${channel}`;
          $('enter').hidden = true;
          $('inside').hidden = false;
          enter(channel);
          $('message').focus();
        });

        $('leave').addEventListener('click', () => {
          chat?.disconnect();
          chat = room = undefined;
          $('inside').hidden = true;
          $('enter').hidden = false;
          show('chat-state', 'Not in a room');
          $('room').focus();
        });

        $('say').addEventListener('submit', async event => {
          event.preventDefault();
          const field = $('message');
          const text = field.value.trim();
          if (!text || !room) return;
          field.value = '';
          try {
            await room.publish({ text, name: $('name').value.trim(), sent: Date.now() });
          } catch (error) {
            // A message whose answer did not come may have arrived.
            if (error.wasSent) return note(`No answer from the server: “${text}” may have arrived or not.`);
            if (!field.value) field.value = text;
            note(`Not sent: ${error.message}. Try again.`);
          }
        });

        // ---- Echo

        let socket;
        const pending = [];

        function echoed(text, side) {
          const item = element('li', text);
          if (side) item.append(' ', element('span', side, 'side'));
          append($('echoes'), item);
        }

        function echo() {
          if (socket && socket.readyState < 2) return socket;
          const url = new URL('echo', location.href);
          url.protocol = url.protocol.replace('http', 'ws');
          socket = new WebSocket(url);
          socket.binaryType = 'arraybuffer';
          socket.opened = new Promise((resolve, reject) => {
            socket.onopen = () => {
              show('echo-state', socket.extensions ? 'Connected, compressed' : 'Connected', 'good');
              resolve();
            };
            socket.onclose = event => {
              const how = event.wasClean ? 'closed' : 'lost';
              const words = `${how} with ${event.code}${event.reason ? ` “${event.reason}”` : ''}`;
              show('echo-state', `Connection ${words}`, event.wasClean ? '' : 'bad');
              echoed(`Connection ${words}`);
              reject(new Error(words));
              for (const { reject } of pending.splice(0)) reject(new Error(words));
            };
          });
          socket.opened.catch(() => {});
          socket.onmessage = event => pending.shift()?.resolve(event.data);
          show('echo-state', 'Connecting');
          return socket;
        }

        // The echoes come in the order of the messages.
        async function roundTrip(data) {
          const current = echo();
          await current.opened;
          const start = performance.now();
          const back = await new Promise((resolve, reject) => {
            pending.push({ resolve, reject });
            current.send(data);
          });
          return { back, time: performance.now() - start };
        }

        // Some browsers round their clock to whole milliseconds.
        const milliseconds = time => time === 0 ? 'under 1 ms' : `${time.toFixed(time < 10 ? 2 : 0)} ms`;

        $('text').addEventListener('submit', async event => {
          event.preventDefault();
          try {
            const { back, time } = await roundTrip($('text-value').value);
            echoed(back, milliseconds(time));
          } catch {
            // The end of the connection is in the log.
          }
        });

        function randomBytes(count) {
          const bytes = new Uint8Array(count);
          for (let at = 0; at < count; at += 65536) crypto.getRandomValues(bytes.subarray(at, at + 65536));
          return bytes;
        }

        $('binary').addEventListener('submit', async event => {
          event.preventDefault();
          const sent = randomBytes(Math.min(Math.max(0, Number($('size').value) | 0), 1 << 24));
          try {
            const { back, time } = await roundTrip(sent);
            const bytes = new Uint8Array(back);
            const same = bytes.length === sent.length && bytes.every((byte, at) => byte === sent[at]);
            echoed(`${bytes.length} bytes, ${same ? 'the same' : 'NOT the same'}`, milliseconds(time));
          } catch {
            // The end of the connection is in the log.
          }
        });

        // Not disabled meanwhile, which would take the focus away.
        let isMeasuring = false;
        $('measure').addEventListener('click', async () => {
          if (isMeasuring) return;
          isMeasuring = true;
          $('times').textContent = 'Measuring';
          try {
            const times = [];
            for (let count = 0; count < 20; count++) times.push((await roundTrip('ping')).time);
            times.sort((a, b) => a - b);
            const [fastest, median, slowest] = [times[0], times[10], times[19]].map(milliseconds);
            $('times').textContent = `median ${median}, fastest ${fastest}, slowest ${slowest}`;
          } catch (error) {
            $('times').textContent = `Connection ${error.message}`;
          }
          isMeasuring = false;
        });

        $('close').addEventListener('submit', async event => {
          event.preventDefault();
          const code = Number($('code').value);
          if (code !== 1000 && !(code >= 3000 && code <= 4999)) {
            $('code').focus();
            return echoed('A page may close with 1000 or with 3000 to 4999.');
          }
          try {
            const current = echo();
            await current.opened;
            current.close(code);
          } catch (error) {
            echoed(`Not closed: ${error.message}`);
          }
        });

        """#
}
