/// The style of the page, from the width of a phone up, light and dark.
enum PageStyle {
    static let text = #"""

        :root {
          color-scheme: light dark;
          --ground: #f7f6f2; --card: #fffefb; --ink: #20241f; --soft: #5b625a; --line: #d9d7cd; --field: #8a8f86;
          --accent: #0b5f58; --on-accent: #ffffff; --good: #1b6e3c; --bad: #a3341f; --own: #e9f1ee;
        }
        @media (prefers-color-scheme: dark) {
          :root {
            --ground: #131614; --card: #1a1e1b; --ink: #e7e6df; --soft: #a2aaa1; --line: #303631; --field: #727a72;
            --accent: #7fd1c7; --on-accent: #0c2522; --good: #82cf9d; --bad: #f0957f; --own: #20302c;
          }
        }
        * { box-sizing: border-box; }
        body {
          margin: 0 auto; max-width: 74rem; padding: clamp(1rem, 4vw, 3rem);
          background: var(--ground); color: var(--ink);
          font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
          overflow-wrap: anywhere;
        }
        header { margin-bottom: clamp(1.25rem, 3vw, 2.25rem); }
        h1 { margin: 0; font-size: clamp(1.9rem, 5vw, 2.6rem); line-height: 1.1; letter-spacing: -0.03em; }
        header p { margin: 0.5rem 0 0; color: var(--soft); max-width: 38rem; }
        main { display: grid; gap: clamp(1rem, 2.5vw, 1.75rem); align-items: start; }
        @media (min-width: 60rem) { main { grid-template-columns: minmax(0, 1.15fr) minmax(0, 1fr); } }
        section {
          background: var(--card); border: 1px solid var(--line); border-radius: 0.75rem; min-width: 0;
          padding: clamp(1rem, 2.5vw, 1.6rem);
        }
        .title, .room {
          display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; align-items: baseline; justify-content: space-between;
        }
        h2, h3 { margin: 0; line-height: 1.25; font-weight: 620; letter-spacing: -0.01em; }
        h2 { font-size: 1.3rem; }
        h3 { font-size: 1.05rem; }
        h3:focus, section:focus { outline: none; }
        .hint { margin: 0.35rem 0 1.1rem; color: var(--soft); font-size: 0.94rem; }
        .state { margin: 0; color: var(--soft); font-size: 0.9rem; }
        .state::before { content: ""; display: inline-block; width: 0.5rem; height: 0.5rem; margin-right: 0.45rem;
          border-radius: 50%; background: currentColor; }
        .state.good { color: var(--good); }
        .state.bad { color: var(--bad); }
        .row { display: flex; flex-wrap: wrap; gap: 0.6rem; align-items: end; margin: 0 0 0.9rem; }
        label { display: grid; gap: 0.2rem; flex: 1 1 8rem; min-width: 0; font-size: 0.87rem; color: var(--soft); }
        .wide { flex: 2 1 11rem; min-width: 0; }
        input, button { font: inherit; min-height: 2.75rem; border-radius: 0.45rem; max-width: 100%; }
        input {
          width: 100%; padding: 0.4rem 0.7rem; border: 1px solid var(--field); font-size: 1rem;
          background: var(--ground); color: var(--ink);
        }
        button {
          padding: 0.4rem 1.05rem; border: 1px solid var(--accent); font-weight: 560; cursor: pointer;
          background: var(--accent); color: var(--on-accent);
        }
        button.quiet, #measure { background: transparent; color: var(--accent); }
        button.quiet { min-height: 2.25rem; padding: 0.1rem 0.8rem; }
        button:disabled { opacity: 0.55; cursor: default; }
        :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
        output { align-self: center; font-variant-numeric: tabular-nums; font-size: 0.92rem; }
        .people { display: flex; flex-wrap: wrap; gap: 0.35rem; list-style: none; margin: 0.5rem 0 0.75rem; padding: 0; }
        .people li { border: 1px solid var(--line); border-radius: 1rem; padding: 0.05rem 0.65rem; font-size: 0.87rem; }
        .log {
          margin: 0 0 0.9rem; padding: 0.4rem 0; border-block: 1px solid var(--line);
          height: 19rem; overflow-y: auto; overscroll-behavior: contain;
        }
        .log ol { list-style: none; margin: 0; padding: 0; }
        #echo .log { height: 11rem; margin-bottom: 0; font-size: 0.92rem; }
        .log li { padding: 0.3rem 0.5rem; border-radius: 0.4rem; white-space: pre-wrap; }
        .log li.own { background: var(--own); }
        .log li.note { color: var(--soft); font-size: 0.88rem; }
        .log strong { font-weight: 620; }
        .log time, .log .side {
          color: var(--soft); font-size: 0.82rem; margin-left: 0.5rem; font-variant-numeric: tabular-nums;
        }
        .log p { margin: 0; }
        code { font-family: ui-monospace, "Cascadia Mono", Menlo, monospace; font-size: 0.92em; }
        footer { margin-top: 1.5rem; color: var(--soft); font-size: 0.9rem; }
        a { color: var(--accent); text-underline-offset: 0.15em; }
        .skip { position: absolute; left: -99rem; }
        .skip:focus { left: 1rem; top: 1rem; padding: 0.5rem 1rem; background: var(--card); z-index: 1; }
        [hidden] { display: none; }

        """#
}
