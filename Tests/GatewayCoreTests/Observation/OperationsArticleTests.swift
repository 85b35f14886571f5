import Foundation
import GatewayCore
import Testing

@Suite("The article for operators")
struct OperationsArticleTests {
    private static let article = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Sources/GatewayCore/GatewayCore.docc/Operations.md")

    /// One of each kind. The switch below has no default: a new kind does not compile until it is listed in both.
    private static let causes: [TerminationCause] = [
        .clean(closeCode: nil), .abnormalClose(closeCode: 1011), .reset, .truncated, .unresponsive,
        .violation(closeCode: 1002), .proxyHeader, .refusedRequest(status: 404), .tls, .tokenExpired, .unreachable,
        .proxy,
        .upstreamStatus(503), .upstreamHandshake, .drained, .stopped, .system,
    ]

    private static func isListedByItself(_ cause: TerminationCause) -> Bool {
        switch cause {
        // Their raw values are listed one by one.
        case .timeout, .refusedAdmission: false
        case .clean, .abnormalClose, .reset, .truncated, .unresponsive, .violation, .proxyHeader, .refusedRequest, .tls,
            .tokenExpired,
            .unreachable, .proxy, .upstreamStatus, .upstreamHandshake, .drained, .stopped, .system:
            true
        }
    }

    @Test func everyPartOfATerminationReasonIsExplained() throws {
        let article = try String(contentsOf: Self.article, encoding: .utf8)
        let names =
            Self.causes.filter(Self.isListedByItself).map(\.name)
            + TerminationTimeout.allCases.map { TerminationCause.timeout($0).name }
            + AdmissionRefusal.allCases.map(\.rawValue)
            + TerminationParty.allCases.map(\.rawValue)
            + TerminationPhase.allCases.map(\.rawValue)
        #expect(names.filter { !article.contains("| `\($0)` |") } == [])
    }
}
