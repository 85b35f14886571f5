import GatewayConfiguration
import GatewayTestSupport
import Testing

@Suite("Files of targets")
struct TargetListTests {
    private func list(_ text: String) throws -> TargetList {
        var list = TargetList()
        try list.add(Array(text.utf8))
        return list
    }

    private func problem(_ text: String) -> String? {
        do {
            _ = try self.list(text)
            return nil
        } catch {
            return "\(error)"
        }
    }

    @Test func linesAreThoseOfWebsockifysTokenFiles() throws {
        let list = try self.list(
            """
            # desks

            desk-1: 10.0.0.5:5900
              desk:2:\tvnc.example:5901\u{20}
            six: [2001:db8::1]:5900
            socket: unix:///run/vnc.sock
            url: tcp://10.0.0.6:1
            """)
        let targets = ["desk-1", "desk:2", "six", "socket", "url"].map { list[$0]?.description }
        #expect(
            targets == [
                "tcp://10.0.0.5:5900", "tcp://vnc.example:5901", "tcp://[2001:db8::1]:5900", "unix:///run/vnc.sock",
                "tcp://10.0.0.6:1",
            ])
        #expect(list.urls.count == 5)
        for name in ["", "desk", "DESK-1", "# desks", "desk-1 "] { #expect(list[name] == nil, "\(name)") }
    }

    @Test func windowsLinesAndAByteOrderMarkAreAccepted() throws {
        let list = try self.list("\u{FEFF}a: h:1\r\nb: h:2\r\n")
        #expect(list["a"]?.description == "tcp://h:1" && list["b"]?.description == "tcp://h:2")
        #expect(try self.list("").urls.isEmpty)
    }

    @Test func namesAreComparedAsBytes() throws {
        let list = try self.list("\u{E9}: h:1\ne\u{301}: h:2\n")
        #expect(list["\u{E9}"]?.description == "tcp://h:1" && list["e\u{301}"]?.description == "tcp://h:2")
    }

    @Test(arguments: [
        (
            "a: h:1\nb h:2",
            "line 2: expected a name of at most 255 bytes, a colon, a space and a target; write it like desk-1: 10.0.0.5:5900"
        ),
        ("a:h:1", "line 1: expected a name of at most 255 bytes"),
        (": h:1", "line 1: expected a name of at most 255 bytes"),
        ("a: h", "line 1: expected a port after the host of tcp://"),
        ("a: h:0", "line 1: expected a port from 1 to 65535"),
        ("a: h:1\n\na: h:2", "line 3: expected a name that no other line has"),
        ("a: ::1:5900", "line 1: expected one colon at most"),
        ("a: tls://h:1", "line 1: expected HOST:PORT, tcp://HOST:PORT or"),
        ("a: ws://h", "line 1: expected HOST:PORT, tcp://HOST:PORT or"), ("a: h:1/x", "line 1: expected"),
        ("a: h:1 h:2", "line 1: expected a URL of at most 4096 printable ASCII characters without spaces"),
    ])
    func mistakesAreReportedWithTheirLine(_ text: String, _ beginning: String) {
        let problem = self.problem(text)
        #expect(problem?.hasPrefix(beginning) == true, "\(problem ?? "none")")
    }

    @Test func bytesThatAreNoTextAreRefused() {
        var list = TargetList()
        #expect(throws: TargetListError.self) { try list.add(Array("a: h:1\n".utf8) + [0xFF, 0x3A, 0x20, 0x68]) }
    }

    @Test func targetsAreLimited() {
        let lines = (0...TargetList.limit).map { "\($0): h:1" }
        #expect(self.problem(lines.dropLast().joined(separator: "\n")) == nil)
        #expect(self.problem(lines.joined(separator: "\n")) == "line 10001: expected at most 10000 targets")
    }

    // MARK: Routes

    private func document(_ route: String) -> String {
        """
        listeners:
          - {name: web, listen: "ws://127.0.0.1:0"}
        routes:
          - {name: r, \(route)}
        tokens: [{name: main, key-url: "https://issuer.example/keys"}]
        """
    }

    @Test func targetsAreAFileOrAMapping() throws {
        let short = try ConfigurationSamples.configuration(self.document("path: /, targets: /etc/t"))
        #expect(short.routes[0].target == .targets(TargetSettings(file: "/etc/t")))
        let long = self.document("path: /, targets: {file: /etc/t, parameter: vm}")
        var settings = TargetSettings(file: "/etc/t")
        settings.parameter = "vm"
        #expect(try ConfigurationSamples.configuration(long).routes[0].target == .targets(settings))
        #expect(try ConfigurationSamples.configuration(long).upstream(of: short.routes[0]) == nil)
    }

    @Test(arguments: [
        (
            "path: /, targets: /t, target: echo",
            "c.yaml:4:33: routes[0].targets: expected either target or targets, found both; leave out one of the two"
        ),
        (
            "path: /, targets: /t, files: /f",
            "c.yaml:4:44: routes[0].files: expected either targets or files, found both; leave out one of the two"
        ),
        (
            "path: /, targets: {parameter: a}",
            "c.yaml:4:33: routes[0].targets.file: expected a value for file, found nothing; add file: …"
        ),
        (
            "path: /, targets: {file: /t, parameter: \"a b\"}",
            "c.yaml:4:55: routes[0].targets.parameter: expected a name of letters, digits, -, _, . and ~, found \"a b\""
        ),
        (
            "path: /, targets: /t, headers: {A: b}",
            "c.yaml:4:46: routes[0].headers: expected no headers, as the target is no WebSocket, found a mapping; "
                + "leave them out"
        ),
        (
            "path: /, targets: /t, auth: {tokens: main, query: token}",
            "c.yaml:4:33: routes[0].targets: expected another parameter than auth, which takes token out of the query, "
                + "found \"/t\"; set parameter here, or query in auth"
        ),
    ])
    func mistakesOfARouteAreReported(_ route: String, _ problem: String) {
        #expect(ConfigurationSamples.problems(self.document(route)) == [problem])
    }

    @Test func parameterOfThePathLeavesTheQueryToAuth() {
        let route = "path: \"/vnc/{token}\", targets: /t, auth: {tokens: main, query: token}"
        #expect(ConfigurationSamples.problems(self.document(route)) == [])
    }

    @Test func rawListenersHaveNoRouteWithTargets() {
        let text = """
            listeners: [{name: raw, listen: "tcp://127.0.0.1:0", route: r}]
            routes: [{name: r, targets: /t}]
            """
        #expect(
            ConfigurationSamples.problems(text) == [
                "c.yaml:1:61: listeners[0].route: expected a route with one target, as a raw connection has no request "
                    + "that names one, found \"r\" with targets; add a separate route for this listener"
            ])
    }

    @Test func fileOfTargetsIsAudited() throws {
        for (route, path) in [("targets: /t", "routes[0].targets"), ("targets: {file: /t}", "routes[0].targets.file")] {
            let text = Array(self.document("path: /, \(route)").utf8)
            let files = FileAudit.files(of: try ConfigurationReader.read(text, file: "c.yaml"))
            #expect(files.map { "\($0.keyPath)" } == [path] && files.map(\.use) == [.readOrList])
        }
    }

    // MARK: Bridges

    private func problems(_ listen: String, _ target: String, _ options: BridgeRequest.Option...) -> [String] {
        do throws(ConfigurationProblems) {
            _ = try BridgeRequest(listen: listen, target: target, options: options).read()
            return []
        } catch {
            return error.all.map(\.description)
        }
    }

    @Test func bridgeTakesItsTargetsFromAFile() throws {
        let options = [BridgeRequest.Option(.targets, "vnc.tokens"), .init(.web, "/srv")]
        let request = BridgeRequest(listen: "ws://127.0.0.1:0/websockify", target: "", options: options)
        let configuration = try request.read().configuration
        #expect(configuration.routes.first?.target == .targets(TargetSettings(file: "vnc.tokens")))
        #expect(configuration.upstreams.isEmpty && configuration.routes.count == 2)
    }

    @Test func bridgeHasATargetOrAFileOfTargets() {
        let targets = BridgeRequest.Option(.targets, "t")
        #expect(
            self.problems("ws://127.0.0.1:0", "") == [
                "TARGET: expected an address to connect to, echo or chat, found nothing; add it, or --targets FILE"
            ])
        #expect(
            self.problems("ws://127.0.0.1:0", "tcp://h:1", targets) == [
                "--targets: expected either TARGET or --targets, found both; leave out one of the two"
            ])
        #expect(
            self.problems("tcp://127.0.0.1:0", "", targets) == [
                "--targets: expected LISTEN to begin with ws:// or wss://, found \"tcp://127.0.0.1:0\"; "
                    + "change it, or leave out --targets"
            ])
        #expect(
            self.problems("ws://127.0.0.1:0", "", targets, .init(.connectTimeout, "1s"), .init(.ca, "a")) == [
                "--ca: expected TARGET to begin with tls:// or wss://, found --targets; change it, or leave out --ca",
                "--connect-timeout: expected TARGET with it, found --targets; leave out --connect-timeout",
            ])
    }
}
