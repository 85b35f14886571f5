/// The structure of the page; `{style}` and `{program}` stand for its style and its program.
enum PageMarkup {
    static let text = #"""
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <title>Sluice</title>
        <link rel="icon" href="data:,">
        <style>{style}</style>
        </head>
        <body>
        <a class="skip" href="#chat">Skip to the chat</a>
        <header>
          <h1>Sluice</h1>
          <p>This gateway is running. Talk to it from here, and see what WebSockets do.</p>
          <noscript><p>This page needs JavaScript. <code>sluice connect</code> talks to the same paths without it:
            <code>/echo</code>, and <code>/chat/</code> with the name of a room.</p></noscript>
        </header>
        <main>
        <section id="chat" aria-labelledby="chat-title" tabindex="-1">
          <div class="title">
            <h2 id="chat-title">Chat</h2><p class="state" id="chat-state" role="status">Not in a room</p>
          </div>
          <p class="hint">Open this page in a second window, and talk to yourself. A lost connection loses nothing.</p>
          <form id="enter" class="row">
            <label>Your name <input id="name" required maxlength="40" autocomplete="nickname" dir="auto"
              pattern=".*\S.*" title="A name with at least one visible character"></label>
            <label>Room <input id="room" required maxlength="64" value="lobby" pattern="\s*[A-Za-z0-9._\-]+\s*"
              title="Letters, digits, dots, hyphens and underscores" autocapitalize="none" spellcheck="false"></label>
            <button>Enter</button>
          </form>
          <div id="inside" hidden>
            <div class="room">
              <h3 id="room-title" tabindex="-1"></h3>
              <button type="button" class="quiet" id="leave">Leave</button>
            </div>
            <ul id="people" class="people" aria-label="People in the room"></ul>
            <div class="log" role="log" aria-label="Messages" tabindex="0"><ol id="messages"></ol></div>
            <form id="say" class="row">
              <label class="wide">Message
                <input id="message" maxlength="2000" autocomplete="off" enterkeyhint="send" dir="auto"></label>
              <button>Send</button>
            </form>
          </div>
        </section>
        <section id="echo" aria-labelledby="echo-title">
          <div class="title">
            <h2 id="echo-title">Echo</h2><p class="state" id="echo-state" role="status">Not connected</p>
          </div>
          <p class="hint">Every message to <code>/echo</code> comes back as it was sent.</p>
          <form id="text" class="row">
            <label class="wide">Text <input id="text-value" value="Hello" autocomplete="off" dir="auto"></label>
            <button>Send text</button>
          </form>
          <form id="binary" class="row">
            <label class="wide">Random bytes
              <input id="size" type="number" min="0" max="16777216" value="1024"></label>
            <button>Send bytes</button>
          </form>
          <div class="row">
            <button type="button" id="measure">Measure round trips</button>
            <output id="times" class="wide" for="measure"></output>
          </div>
          <form id="close" class="row">
            <label class="wide">Close code <input id="code" type="number" value="1000" list="codes"></label>
            <datalist id="codes">
              <option value="1000">normal closure</option>
              <option value="3000">registered range</option>
              <option value="4000">private range</option>
            </datalist>
            <button>Close</button>
          </form>
          <div class="log" role="log" aria-label="Messages of the echo" tabindex="0"><ol id="echoes"></ol></div>
        </section>
        </main>
        <footer>
          <p>The chat uses <a href="sluice-chat.js">sluice-chat.js</a>, a client for your own pages too.</p>
        </footer>
        <script type="module">{program}</script>
        </body>
        </html>

        """#
}
