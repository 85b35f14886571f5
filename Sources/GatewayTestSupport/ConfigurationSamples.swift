import Foundation
import GatewayConfiguration

/// Configurations to read, and what reading them gives.
package enum ConfigurationSamples {
    /// The top of the package.
    private static let package = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    package static let examples: [String] = Self.names(in: "deploy/examples", ending: ".yaml")

    package static func text(_ path: String) throws -> String {
        try String(contentsOf: Self.package.appendingPathComponent(path), encoding: .utf8)
    }

    /// What only a control plane with TLS can have.
    package static let secureControl = """
        listeners: [{name: web, listen: "ws://127.0.0.1:0"}]
        routes: [{name: echo, path: /echo, target: echo}]
        control:
          address: https://0.0.0.0:8443
          tls: {certificate: a.pem, key: a.key, client-ca: ca.pem}
          clients:
            - {name: a, subject: "CN=a,O=Example", scopes: [read]}
            - {name: b, alternative-name: "spiffe://example/b", scopes: [operate]}
            - {name: c, pin: "sha256/d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZWmM=", scopes: [metrics]}
        """

    /// Every option of every section, each with a value that is not its default.
    package static let everything = """
        control:
          address: unix:///run/sluice/control.sock
          mode: 0660
          closed-connections: 50
          keep-handshakes: false
          tokens:
            - name: ops
              hash: sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
              scopes: [read, operate]
              expires: 2027-01-01T00:00:00Z
          peers: [{uid: 1000, gid: 1000, scopes: [configure]}]
          hosts: [control.example.com]
          targets: [public, "10.0.0.0/8:5432", "unix:///run/app/*"]
          max-requests: 64
          request-rate: 100/s
          transfers:
            directories: [/srv/files, /var/lib/sluice]
            max-transfers: 20
            max-running: 5
            max-body: 1MiB
            max-memory: 8MiB
            background: edge
            credentials:
              - {name: mirror, hosts: [mirror.example, "*.mirror.example"], user: ada, password-file: word.txt}
              - {name: inner, hosts: [inner.example], user: ada, password: secret}
              - {name: store, hosts: [store.example], token: abc}
              - {name: vault, hosts: [vault.example], token-file: token.txt}
        max-connections: 1000
        loops: 2
        drain-timeout: 1m
        close-spread: 10s
        log-format: json
        log-level: debug
        listeners:
          - name: raw
            listen: unix:///run/raw.sock
            mode: 0600
            route: raw
          - name: front
            listen: wss://[::1]:8443
            plain-and-tls: true
            tls:
              certificate: a.pem
              key: a.key
              password: secret
              certificates:
                - {certificate: b.pem, key: b.key, password-file: b.txt, server-names: [b.example, "*.b.example"]}
              client-ca: ca.pem
              client-auth: request
              client-crl: [ca.crl, more.crl]
              alpn: [http/1.1]
              min-version: "1.3"
              records: compact
              key-log: keys.log
            proxy-protocol: accept
            proxy-protocol-trusted: [10.0.0.0/8]
            forwarding-trusted: [fd00::/8]
            allow-clients: [10.0.0.0/8, "fd00::/8"]
            deny-clients: [10.0.0.7/32]
            max-connections: 500
            max-connections-per-client: 50
            accept-rate: 100/s
            accept-burst: 200
            handshake-timeout: 5s
            max-tls-handshakes: 200
            max-tls-handshake-size: 16KiB
            max-header-size: 8KiB
            max-header-count: 50
            keep-alive: {idle: 30s, interval: 5s, probes: 3}
            user-timeout: 1m
            backlog: 128
        tokens:
          - {name: shared, secret: 0123456789abcdef0123456789abcdef}
          - {name: stored, secret-file: secret.txt, allow-short-secret: true}
          - {name: issuer, key-file: issuer.pem}
          - name: published
            key-url: https://issuer.example/keys
            refresh-interval: 5m
            algorithms: [ES256, EdDSA]
            audience: [rooms]
            issuer: https://issuer.example
            leeway: 5s
            require-expiry: true
            max-size: 4KiB
        routes:
          - name: raw
            target: tcp://127.0.0.1:5900
          - name: room
            listeners: [front]
            host: "*.b.example"
            path: /rooms/{room}
            target: talk
            framing: base64
            half-close: signal
            origins: [https://app.example, "http://*.app.example:3000"]
            subprotocols: [v2, v1]
            auth: {tokens: published, query: token, cookie: session, subprotocol: true, close-when-expired: false}
            compress: {level: 9, min-size: 1KiB, context-takeover: false, window-bits: 12}
            keep-fragmentation: true
            pass-query: false
            headers: {X-One: a, X-Two: b}
            proxy-protocol: v1
            ping-interval: 10s
            pong-timeout: 5s
            max-message-size: 2MiB
            idle-timeout: 2h
            max-age: 1d
            buffer: {high: 128KiB, low: 8KiB}
            keep-alive: {idle: none, interval: 7s, probes: 2}
            user-timeout: none
          - name: site
            listeners: [front]
            path: "/site/{path...}"
            files: {directory: /srv/www, cache-control: max-age=60, headers: {X-One: a}, listing: true}
          - {name: desks, path: "/desk/{desk}", targets: {file: desks.txt, parameter: desk}}
        upstreams:
          - name: talk
            endpoints:
              - url: wss://one.internal/r/{room}
                weight: 3
              - wss://two.internal/r/{room}
            policy: failover
            connect-timeout: 2s
            handshake-timeout: 3s
            retries: 4
            retry-delay: 50ms
            retry-max-delay: 1s
            eject-failures: 2
            eject-duration: 10s
            tls:
              ca: up.pem
              crl: up.crl
              certificate: me.pem
              key: me.key
              password-file: me.txt
              server-name: one.internal
              insecure: false
              pins: [sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=]
              alpn: [http/1.1]
              min-version: "1.3"
              key-log: up.log
            subprotocols: [v2]
            proxy: {url: "socks5h://proxy.example", user: gateway, password-file: proxy.txt}
        rooms:
          policies:
            - name: news
              pattern: "news:*"
              subscribe: users
              publish: token
              read: everyone
              presence: true
              join-leave: true
              history-size: 200
              history-time: 10m
              history-bytes: 1MiB
              recovery: cache
              max-message-size: 16KiB
              publication-rate: 20
              join-rate: 10
              max-members: 5000
              slow-readers: skip-to-latest
              delta: fossil
              tag-filters: true
          ping-interval: 20s
          pong-timeout: 5s
          connect-timeout: 4s
          refresh-delay: 30s
          max-rooms: 50
          max-name-length: 100
          command-rate: 200
          max-recovery: 500
          max-history: 100
          max-connections-per-user: 8
          tokens: published
          anonymous: false
          personal-room: "#{user}"
          user-header: X-User
          max-total: 1000
          max-total-per-client: 100
          max-history-total: 64MiB
          api-keys:
            - {name: backend, hash: "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}
        cluster:
          redis: rediss://redis.example:6380/2
          user: sluice
          password-file: redis.txt
          tls: {ca: redis-ca.pem}
          node: gateway-1
          prefix: chat
          when-away: local
          durable: false
          presence-time: 30s
        """

    /// The problems that the reader finds in `text`, one line each.
    package static func problems(_ text: String) -> [String] {
        do throws(ConfigurationProblems) {
            _ = try ConfigurationReader.read([UInt8](text.utf8), file: "c.yaml")
            return []
        } catch {
            return error.all.map(\.description)
        }
    }

    package static func configuration(_ text: String) throws -> Configuration {
        try ConfigurationReader.read([UInt8](text.utf8), file: "c.yaml").configuration
    }

    private static func names(in folder: String, ending: String) -> [String] {
        let names =
            (try? FileManager.default.contentsOfDirectory(atPath: Self.package.appendingPathComponent(folder).path))
            ?? []
        return names.filter { $0.hasSuffix(ending) }.sorted().map { "\(folder)/\($0)" }
    }
}
