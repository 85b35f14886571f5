import GatewayConfiguration
import GatewayTestSupport
import Testing

@Suite("Routes that answer plain HTTP")
struct FilesRouteTests {
    private func document(_ route: String) -> String {
        """
        listeners:
          - {name: web, listen: "ws://127.0.0.1:0"}
        routes:
          - {name: r, \(route)}
        """
    }

    private func target(_ route: String) throws -> RouteTarget? {
        try ConfigurationSamples.configuration(self.document(route)).routes.first?.target
    }

    @Test func filesAreADirectoryOrAMapping() throws {
        #expect(try self.target("path: '/{p...}', files: /srv/www") == .files(FileSettings(directory: "/srv/www")))
        var settings = FileSettings(directory: "/srv/www")
        settings.cacheControl = "max-age=60"
        settings.lists = true
        let mapping = "path: /, files: {directory: /srv/www, cache-control: max-age=60, listing: true}"
        #expect(try self.target(mapping) == .files(settings))
        settings = FileSettings(directory: "/srv/www")
        settings.headers = [ExtraHeader(name: "X-A", value: "b")]
        #expect(try self.target("path: /, files: {directory: /srv/www, headers: {X-A: b}}") == .files(settings))
        #expect(try self.target("path: /, files: {directory: /srv/www, headers: ['X-A: b']}") == .files(settings))
        #expect(FileSettings(directory: "a").cacheControl == "no-cache")
        #expect(try self.target("path: /, target: page") == .page)
    }

    @Test(arguments: [
        (
            "path: /",
            "c.yaml:4:5: routes[0].target: expected a value for target, found nothing; add target: …, targets: … or files: …"
        ),
        (
            "path: /, files: /srv, target: echo",
            "c.yaml:4:31: routes[0].files: expected either target or files, found both; leave out one of the two"
        ),
        (
            "path: /, files: {listing: true}",
            "c.yaml:4:31: routes[0].files.directory: expected a value for directory, found nothing; add directory: …"
        ),
        ("path: /, files: ''", "c.yaml:4:31: routes[0].files: expected the path of a directory, found \"\""),
        (
            "path: /, files: /srv, compress: true",
            "c.yaml:4:47: routes[0].compress: expected no compress, as the route answers plain HTTP requests, found \"true\"; leave it out"
        ),
        (
            "path: /, files: /srv, headers: {A: b}",
            "c.yaml:4:46: routes[0].headers: expected no headers, as the route answers plain HTTP requests, found a mapping; leave it out"
        ),
        (
            "path: /, files: {directory: /srv, cache-control: \"a\\nb\"}",
            "c.yaml:4:64: routes[0].files.cache-control: expected a header value of at most 1024 visible characters and spaces, found \"a\\u{a}b\""
        ),
    ])
    func mistakesAreReported(_ route: String, _ problem: String) {
        #expect(ConfigurationSamples.problems(self.document(route)) == [problem])
    }

    @Test(arguments: [
        (
            "Transfer-Encoding: chunked",
            "a header about the file, not about the connection or the length of the response"
        ),
        ("connection: close", "a header about the file, not about the connection or the length of the response"),
        ("Content-Length: '1'", "a header about the file, not about the connection or the length of the response"),
        ("ETag: x", "a header that the gateway does not make for each file"),
        ("Vary: Origin", "a header that the gateway does not make for each file"),
        ("Cache-Control: no-store", "a header without a key of its own"),
        ("X A: b", "a header name of letters, digits and !#$%&'*+-.^_`|~"),
        ("X-A: \"a\\r\\nb\"", "a header value of at most 4096 bytes without control characters"),
        ("X-A: ' b'", "a header value without leading and trailing spaces"),
    ])
    func headersOfFilesAreChecked(_ header: String, _ expected: String) {
        let problems = ConfigurationSamples.problems(
            self.document("path: /, files: {directory: /s, headers: {\(header)}}"))
        #expect(problems.count == 1 && problems.first?.contains("expected \(expected), found ") == true, "\(problems)")
    }

    @Test func plainRequestsAndWebSocketsMayHaveOnePath() {
        let both = """
            listeners: [{name: web, listen: "ws://127.0.0.1:0"}]
            routes:
              - {name: a, path: "/{p...}", target: echo}
              - {name: b, path: "/{q...}", files: /srv}
            """
        #expect(ConfigurationSamples.problems(both) == [])
        let third = both + "\n  - {name: c, path: \"/{r...}\", files: /srv}"
        #expect(ConfigurationSamples.problems(third).count == 1)
    }

    @Test func rawListenersHaveNoSuchRoute() {
        let text = """
            listeners: [{name: raw, listen: "tcp://127.0.0.1:0", route: r}]
            routes: [{name: r, files: /srv}]
            """
        #expect(
            ConfigurationSamples.problems(text) == [
                "c.yaml:1:61: listeners[0].route: expected a route for raw connections, found \"r\", which answers plain "
                    + "HTTP requests; begin listen with ws or wss, or name another route"
            ])
    }

    // MARK: Bridges

    private func routes(_ listen: String) throws -> [String] {
        let request = BridgeRequest(listen: listen, target: "tcp://127.0.0.1:5900", options: [.init(.web, "/srv/www")])
        return try request.read().configuration.routes.map { route in
            let isFiles = route.target == .files(FileSettings(directory: "/srv/www"))
            return "\(route.path?.description ?? "-") \(isFiles ? "files" : "target")"
        }
    }

    @Test func bridgeServesFilesBesideItsTarget() throws {
        #expect(try self.routes("ws://127.0.0.1:6080/vnc") == ["/vnc target", "/{path...} files"])
        #expect(try self.routes("ws://127.0.0.1:6080") == ["/{path...} target", "/{path...} files"])
        #expect(try self.routes("ws://127.0.0.1:6080/") == ["/ target", "/{path...} files", "/ files"])
    }

    @Test func onlyBridgesOfWebSocketClientsServeFiles() {
        let request = BridgeRequest(listen: "tcp://127.0.0.1:1", target: "ws://h", options: [.init(.web, "/srv")])
        do throws(ConfigurationProblems) {
            _ = try request.read()
            #expect(Bool(false))
        } catch {
            #expect(
                error.all.map(\.description) == [
                    "--web: expected LISTEN to begin with ws:// or wss://, found \"tcp://127.0.0.1:1\"; "
                        + "change it, or leave out --web"
                ])
        }
    }
}
