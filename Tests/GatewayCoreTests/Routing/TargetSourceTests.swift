import Foundation
import GatewayConfiguration
import GatewayCore
import GatewayTestSupport
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("Targets that requests name")
struct TargetSourceTests {
    private let folder: ServedFolder

    init() throws {
        self.folder = try ServedFolder().write("targets", "one: 10.2.0.1:2001\ntwo: 10.2.0.1:2002\nné: 10.2.0.1:2001\n")
    }

    private var file: String { "\(self.folder.path)/targets" }

    private func configuration(_ targets: String? = nil) -> String {
        """
        listeners: [{name: web, listen: "ws://10.1.0.1:1001"}]
        tokens: [{name: main, secret: \(TokenScene.secret)}]
        routes:
          - {name: query, path: /websockify, targets: "\(targets ?? self.file)"}
          - {name: path, path: "/to/{desk}", targets: {file: "\(targets ?? self.file)", parameter: desk}}
          - {name: closed, path: /closed, targets: "\(targets ?? self.file)", auth: main}
        """
    }

    /// The statuses of WebSocket requests, one after another.
    private func statuses(_ scene: GatewayScene, _ targets: [String]) throws -> [String] {
        try targets.map { target in
            let client = try scene.webSocketClient(1001, target)
            defer { client.peer.close() }
            return scene.head(client)?.split(separator: " ").dropFirst().first.map(String.init) ?? "none"
        }
    }

    private func status(_ scene: GatewayScene, _ target: String) throws -> String {
        try self.statuses(scene, [target]).joined()
    }

    @Test func requestIsForwardedToTheTargetThatItNames() throws {
        let scene = try GatewayScene(self.configuration())
        let (one, two) = (try scene.upstream(2001), try scene.upstream(2002))
        #expect(
            try self.statuses(scene, ["/websockify?token=one", "/websockify?a=b&%74oken=%6Fne"]) == ["101", "101"])
        #expect(one.accepted.count == 2 && two.accepted.isEmpty)
        #expect(
            try self.statuses(scene, ["/websockify?token=two", "/to/two", "/to/n%C3%A9"]) == ["101", "101", "101"])
        #expect(one.accepted.count == 3 && two.accepted.count == 2)
        let client = try scene.webSocketClient(1001, "/to/two")
        #expect(scene.head(client)?.contains(" 101 ") == true)
        let upstream = try #require(two.accepted.last)
        upstream.send("RFB 003.008\n")
        #expect(scene.run { client.frames.contains { $0.payload == Array("RFB 003.008\n".utf8) } })
        client.peer.close()
        scene.finish()
    }

    @Test func unknownTargetIs404BeforeTheUpgrade() throws {
        let scene = try GatewayScene(self.configuration())
        let one = try scene.upstream(2001)
        let targets = [
            "/websockify", "/websockify?token=", "/websockify?token=three", "/websockify?token=ONE",
            "/websockify?Token=one",
            "/websockify?token=one&token=one", "/websockify?token=10.2.0.1:2001", "/to/tcp%3A%2F%2F10.2.0.1%3A2001",
            "/to/%2e%2e?desk=one",
        ]
        #expect(try self.statuses(scene, targets) == Array(repeating: "404", count: 8) + ["400"])
        #expect(one.accepted.isEmpty)
        let plain = try scene.fetch("/websockify?token=one")
        #expect(plain.status == 426)
        scene.finish()
    }

    @Test func requestIsAuthenticatedBeforeItsTargetIsLookedUp() throws {
        let scene = try GatewayScene(self.configuration())
        _ = try scene.upstream(2001)
        let token = TokenScene.token(#"{"sub":"ada"}"#)
        let targets = ["one", "three"].flatMap { ["/closed?token=\($0)", "/closed?token=\($0)&access_token=\(token)"] }
        #expect(try self.statuses(scene, targets) == ["401", "101", "401", "404"])
        scene.finish()
    }

    /// Changes are looked for once a second: clients do not decide how often the file is read.
    @Test func changeOfTheFileHoldsWithinASecond() throws {
        let scene = try GatewayScene(self.configuration())
        let (_, two) = (try scene.upstream(2001), try scene.upstream(2002))
        #expect(try self.status(scene, "/to/one") == "101")
        try self.folder.write("targets", "three: 10.2.0.1:2002\n")
        #expect(try self.statuses(scene, ["/to/one", "/to/three"]) == ["101", "404"])
        scene.network.run(for: .seconds(1))
        #expect(try self.statuses(scene, ["/to/one", "/to/three"]) == ["404", "101"])
        #expect(two.accepted.count == 1)
        scene.finish()
    }

    @Test func fileWithAMistakeLeavesTheTargetsAsTheyWere() throws {
        let scene = try GatewayScene(self.configuration())
        _ = try scene.upstream(2001)
        try self.folder.write("targets", "one: 10.2.0.1:2001\ntwo\n")
        #expect(try self.statuses(scene, ["/to/one", "/to/one", "/to/one"]) == ["101", "101", "101"])
        let warning = "targets of route 'path' stay as they were: \(self.file): line 2: expected a name"
        #expect(scene.gateway.logged(warning) == 1)
        scene.network.run(for: .seconds(1))
        #expect(try self.status(scene, "/to/one") == "101" && scene.gateway.logged(warning) == 1)
        try self.folder.remove()
        scene.network.run(for: .seconds(1))
        #expect(try self.statuses(scene, ["/to/one", "/to/one", "/to/two"]) == ["101", "101", "502"])
        #expect(scene.gateway.logged("stay as they were: \(self.file): \(SystemError.noSuchFile)") == 1)
        scene.finish()
    }

    /// A copy of a file may have any time.
    @Test(arguments: [-9_000_000_000, 10_413_792_000])
    func timesBeyondThoseOfClocksAreTimes(_ seconds: Int) throws {
        var times = [timespec(tv_sec: seconds, tv_nsec: 0), timespec(tv_sec: seconds, tv_nsec: 0)]
        #expect(unsafe utimensat(AT_FDCWD, self.file, &times, 0) == 0)
        let scene = try GatewayScene(self.configuration())
        _ = try scene.upstream(2001)
        #expect(try self.statuses(scene, ["/to/one", "/to/three"]) == ["101", "404"])
        scene.network.run(for: .seconds(1))
        #expect(try self.statuses(scene, ["/to/one", "/to/three"]) == ["101", "404"])
        scene.finish()
    }

    @Test func directoryHasTheTargetsOfItsFiles() throws {
        try self.folder.write("tokens/a", "one: 10.2.0.1:2001\n").write("tokens/b", "two: 10.2.0.1:2001\n")
            .write("tokens/.b.swp", "no targets").write("tokens/sub/c", "no targets")
        let scene = try GatewayScene(self.configuration("\(self.folder.path)/tokens"))
        _ = try scene.upstream(2001)
        #expect(try self.statuses(scene, ["/to/one", "/to/two", "/to/three"]) == ["101", "101", "404"])
        try self.folder.write("tokens/c", "three: 10.2.0.1:2001\n")
        scene.network.run(for: .seconds(1))
        #expect(try self.statuses(scene, ["/to/one", "/to/three"]) == ["101", "101"])
        scene.finish()
    }

    @Test(arguments: [
        ("targets", "one 10.2.0.1", "targets: line 1: expected a name"),
        ("other", "", "targets: \(SystemError.noSuchFile)"),
        ("targets/a", "x: h:1\nx: h:2", "targets/a: line 2: expected a name that no other line has"),
    ])
    func unusableFileIsAProblemOfTheConfiguration(_ name: String, _ text: String, _ problem: String) throws {
        let folder = try ServedFolder().write(name, text)
        let document = self.configuration("\(folder.path)/targets")
        let located = try ConfigurationReader.read(Array(document.utf8), file: "c.yaml")
        let problems = MaterialAudit(located).problems().map(\.description)
        #expect(
            problems.count == 3 && problems.first?.contains("routes[0].targets: expected a file with lines") == true)
        #expect(problems.first?.contains("\(folder.path)/\(problem)") == true, "\(problems)")
        #expect(throws: GatewayPlanError.self) { try GatewayPlan(located.configuration) }
    }
}
