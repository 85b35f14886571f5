import GatewayConfiguration
import GatewayTestSupport
import TestSupport
import Testing

@Suite("Editing documents of the configuration")
struct DocumentEditingTests {
    private func document(_ yaml: String) throws -> DocumentNode {
        try ConfigurationReader.document(Array(yaml.utf8), name: "test")
    }

    /// RFC 7396, appendix A, as far as its documents are mappings.
    @Test(arguments: [
        (#"{"a":"b"}"#, #"{"a":"c"}"#, #"{"a":"c"}"#),
        (#"{"a":"b"}"#, #"{"b":"c"}"#, #"{"a":"b","b":"c"}"#),
        (#"{"a":"b"}"#, #"{"a":null}"#, #"{}"#),
        (#"{"a":"b","b":"c"}"#, #"{"a":null}"#, #"{"b":"c"}"#),
        (#"{"a":["b"]}"#, #"{"a":"c"}"#, #"{"a":"c"}"#),
        (#"{"a":"c"}"#, #"{"a":["b"]}"#, #"{"a":["b"]}"#),
        (#"{"a":{"b":"c"}}"#, #"{"a":{"b":"d","c":null}}"#, #"{"a":{"b":"d"}}"#),
        (#"{"a":[{"b":"c"}]}"#, #"{"a":[1]}"#, #"{"a":[1]}"#),
        (#"{"e":null}"#, #"{"a":1}"#, #"{"e":null,"a":1}"#),
        (#"{}"#, #"{"a":{"bb":{"ccc":null}}}"#, #"{"a":{"bb":{}}}"#),
    ])
    func aPatchIsLaidOver(_ before: String, _ patch: String, _ after: String) throws {
        let merged = try self.document(before).merged(with: try self.document(patch))
        #expect(merged.isSame(as: try self.document(after)))
    }

    @Test func theOrderOfKeysMakesNoDifferenceButTheOrderOfAListDoes() throws {
        #expect(try self.document("{a: 1, b: 2}").isSame(as: try self.document("b: 2\na: 1")))
        #expect(try !self.document("[a, b]").isSame(as: try self.document("[b, a]")))
        #expect(try !self.document("{a: 1}").isSame(as: try self.document("{a: 1, b: 2}")))
        #expect(try !self.document("{a: 1}").isSame(as: try self.document("{b: 1}")))
    }

    @Test func writtenDocumentReadsBackEqual() throws {
        let everything = try self.document(ConfigurationSamples.everything)
        let text = try #require(YAMLText.text(of: everything))
        #expect(try self.document(text).isSame(as: everything))
    }

    @Test(arguments: [
        "", " ", "null", "~", "true", "a: b", "- a", "#x", "a #b", "\"q\"", "'", "*a", "&a", "!x", "%x", "@x", "`x`",
        "{a}", "[b]", "a\nb",
        "0660", "1.2", "1e3", "yes", "a ", "grüße", "\u{1F600}", "\t", "?", "|", ">", "key: 'v'",
    ])
    func textsAreWrittenUnambiguously(_ text: String) throws {
        let scalar = DocumentNode(.scalar(text), origin: DocumentNode.requestOrigin)
        let document = DocumentNode(.mapping([]), origin: DocumentNode.requestOrigin).with("a", scalar)
        let written = try #require(YAMLText.text(of: document))
        #expect(try self.document(written)["a"]?.text == text)
    }

    // MARK: Secrets

    private static let secret = """
        listeners: [{name: a, tls: {password: hunter2, certificates: [{password: hunter3}]}}]
        routes:
          - {name: r, headers: {Authorization: hunter4, X-One: shown}}
          - {name: s, headers: ["authorization: hunter5", "X-Two: shown"]}
        control: {transfers: {credentials: [{name: c, token: hunter6}]}}
        """

    @Test func secretsAreHidden() throws {
        let shown = try #require(YAMLText.text(of: try self.document(Self.secret).hidingSecrets()))
        #expect(!shown.contains("hunter"))
        #expect(shown.contains("X-One") && shown.contains("X-Two: shown"))
    }

    @Test func hiddenValueKeepsTheFormerSecret() throws {
        let document = try self.document(Self.secret)
        let restored = document.hidingSecrets().restoringSecrets(from: document)
        #expect(restored.isSame(as: document))
        #expect(document.unknownSecrets().isEmpty)
        #expect(
            document.hidingSecrets().unknownSecrets().map(\.description).sorted() == [
                "control.transfers.credentials[0].token", "listeners[0].tls.certificates[0].password",
                "listeners[0].tls.password", "routes[0].headers.Authorization", "routes[1].headers[0]",
            ])
    }

    @Test func movedEntryKeepsItsSecrets() throws {
        let former = try self.document("[{name: a, password: one}, {name: b, password: two}]")
        let turned = try self.document("[{name: b, password: (hidden)}, {name: c, password: (hidden)}]")
        let restored = turned.restoringSecrets(from: former)
        #expect(restored.elements[0]["password"]?.text == "two")
        #expect(restored.unknownSecrets().map(\.description) == ["[1].password"])
    }

    // MARK: Differences

    @Test func differenceListsCreatedChangedAndDeletedEntries() throws {
        let before = try self.document("listeners: [{name: a, x: 1, k: {p: 1, q: 2}}, {name: b}]\nloops: 2")
        let after = try self.document(
            "listeners: [{name: c}, {name: a, x: 2, k: {p: 1, r: 3}}]\nloops: 2\nlog-level: debug")
        let changes = ConfigurationChange.between(before, after)
        #expect(
            changes.map { "\($0.section?.rawValue ?? "-")/\($0.name) \($0.kind)" } == [
                "listeners/b deleted", "listeners/c created", "listeners/a changed", "-/ changed",
            ])
        #expect(changes[2].members.map(\.path.description) == ["x", "k.q", "k.r"])
        #expect(changes[2].members.map { $0.before?.text } == ["1", "2", nil])
        #expect(changes[2].members.map { $0.after?.text } == ["2", nil, "3"])
        #expect(changes[3].members.map(\.needsRestart) == [true])
        #expect(ConfigurationChange.between(before, before).isEmpty)
    }

    @Test func differenceMarksControlMembersThatNeedARestart() throws {
        let before = try self.document("control: {address: 'http://127.0.0.1:1', hosts: [a], keep-handshakes: true}")
        let after = try self.document("control: {address: 'http://127.0.0.1:2', hosts: [b], tokens: [], tls: {}}")
        let members = ConfigurationChange.between(before, after).flatMap(\.members)
        #expect(
            members.map { "\($0.path) \($0.needsRestart)" } == [
                "control.address true", "control.hosts false", "control.keep-handshakes true", "control.tokens false",
                "control.tls false",
            ])
    }

    @Test(arguments: [
        ("control: {transfers: {background: a}}", "control: {transfers: {background: b}}", true),
        ("control: {transfers: {max-memory: 1MiB}}", "control: {transfers: {max-memory: 2MiB}}", false),
        ("control: {hosts: [a]}", "control: {hosts: [a], transfers: {background: b}}", true),
        ("loops: 2", "loops: 2\ncontrol: {hosts: [a]}", false),
        ("loops: 2", "loops: 2\ncontrol: {hosts: [a], keep-handshakes: true}", true),
        ("loops: 2\ncontrol: {transfers: {background: b}}", "loops: 2", true),
        ("cluster: 'redis://a:1'", "cluster: {redis: 'redis://b:1'}", true),
    ])
    func differenceNeedsARestartIfAnyKeyInItDoes(_ before: String, _ after: String, _ needsRestart: Bool) throws {
        let changes = ConfigurationChange.between(try self.document(before), try self.document(after))
        #expect(changes.flatMap(\.members).map(\.needsRestart) == [needsRestart])
    }
}
