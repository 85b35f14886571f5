import Testing
import WebSocketProtocol

@Suite("Negotiating permessage-deflate, RFC 7692 §5 and §7.1")
struct PermessageDeflateTests {
    private static func named(_ text: String) throws -> WebSocketExtension {
        try #require(try ExtensionGrammar.parse([text]).first)
    }

    private static func choice(_ policy: DeflatePolicy, _ value: String) throws -> String? {
        policy.choose(among: try ExtensionGrammar.parse([value]))?.extensionElement.rendered
    }

    static let limited = DeflatePolicy(ownWindowBits: 11, peerWindowBits: 10)
    static let forgetful = DeflatePolicy(ownContextTakeover: false, peerContextTakeover: false)

    static let offers: [(policy: DeflatePolicy, offer: String, response: String?)] = [
        (DeflatePolicy(), "permessage-deflate", "permessage-deflate"),
        (DeflatePolicy(), "permessage-deflate; client_max_window_bits", "permessage-deflate"),
        (
            DeflatePolicy(), "permessage-deflate; client_max_window_bits; server_max_window_bits=10",
            "permessage-deflate; server_max_window_bits=10"
        ),
        (
            DeflatePolicy(), "permessage-deflate; server_max_window_bits=\"8\"",
            "permessage-deflate; server_max_window_bits=8"
        ),
        (
            DeflatePolicy(), "permessage-deflate; server_max_window_bits=15; client_max_window_bits=15",
            "permessage-deflate; server_max_window_bits=15; client_max_window_bits=15"
        ),
        (
            DeflatePolicy(), "permessage-deflate; client_no_context_takeover; server_no_context_takeover",
            "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
        ),
        (limited, "permessage-deflate", "permessage-deflate; server_max_window_bits=11"),
        (
            limited, "permessage-deflate; server_max_window_bits=15; client_max_window_bits",
            "permessage-deflate; server_max_window_bits=11; client_max_window_bits=10"
        ),
        (
            limited, "permessage-deflate; server_max_window_bits=9; client_max_window_bits=8",
            "permessage-deflate; server_max_window_bits=9; client_max_window_bits=8"
        ),
        (
            forgetful, "permessage-deflate",
            "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
        ),
        (DeflatePolicy(peerWindowBits: 9, requiresPeerWindow: true), "permessage-deflate", nil),
        (
            DeflatePolicy(peerWindowBits: 9, requiresPeerWindow: true),
            "permessage-deflate, permessage-deflate; client_max_window_bits",
            "permessage-deflate; client_max_window_bits=9"
        ),
        (DeflatePolicy(requiresPeerWindow: true), "permessage-deflate", "permessage-deflate"),
        (DeflatePolicy(), "x-webkit-deflate-frame, bbf-usp-protocol", nil),
        (DeflatePolicy(), "x-webkit-deflate-frame; no_context_takeover, permessage-deflate", "permessage-deflate"),
        // The first acceptable offer is used: §5.1 and the example in §7.1.3.
        (
            DeflatePolicy(),
            "permessage-deflate; server_max_window_bits=7, permessage-deflate; server_max_window_bits=12",
            "permessage-deflate; server_max_window_bits=12"
        ),
        (
            DeflatePolicy(),
            "permessage-deflate; client_max_window_bits; server_max_window_bits=10, permessage-deflate",
            "permessage-deflate; server_max_window_bits=10"
        ),
    ]

    @Test(arguments: offers)
    func offerIsAnsweredByThePolicy(policy: DeflatePolicy, offer: String, response: String?) throws {
        #expect(try Self.choice(policy, offer) == response)
    }

    static let impossible = [
        "server_no_context_takeover=1", "client_no_context_takeover=true", "server_max_window_bits=7",
        "server_max_window_bits=16", "server_max_window_bits=08", "server_max_window_bits=1e1",
        "server_max_window_bits=-8",
        "server_max_window_bits=99999999999999999999", "client_max_window_bits=7", "client_max_window_bits=16",
        "client_max_window_bits=010", "unknown", "unknown=1", "Server_Max_Window_Bits=10",
        "server_no_context_takeover; server_no_context_takeover",
        "client_no_context_takeover; client_no_context_takeover",
        "server_max_window_bits=10; server_max_window_bits=10", "client_max_window_bits; client_max_window_bits=10",
        "client_max_window_bits=10; client_max_window_bits",
    ]

    @Test(arguments: impossible + ["server_max_window_bits"])
    func malformedOfferIsDeclined(_ parameters: String) throws {
        #expect(try Self.choice(DeflatePolicy(), "permessage-deflate; " + parameters) == nil)
        #expect(PermessageDeflateOffer(try Self.named("permessage-deflate; " + parameters)) == nil)
    }

    @Test(arguments: impossible + ["client_max_window_bits", "server_max_window_bits"])
    func malformedResponseIsRefused(_ parameters: String) throws {
        #expect(PermessageDeflateParameters(try Self.named("permessage-deflate; " + parameters)) == nil)
    }

    static let answers: [(offer: String, response: String, isAnswer: Bool)] = [
        ("", "", true), ("", "; server_no_context_takeover", true), ("", "; client_no_context_takeover", true),
        ("", "; server_max_window_bits=9", true), ("", "; client_max_window_bits=9", false),
        ("; server_no_context_takeover", "", false),
        ("; server_no_context_takeover", "; server_no_context_takeover", true),
        ("; client_no_context_takeover", "", true), ("; server_max_window_bits=10", "", false),
        ("; server_max_window_bits=10", "; server_max_window_bits=10", true),
        ("; server_max_window_bits=10", "; server_max_window_bits=8", true),
        ("; server_max_window_bits=10", "; server_max_window_bits=11", false),
        ("; client_max_window_bits", "; client_max_window_bits=8", true), ("; client_max_window_bits", "", true),
        ("; client_max_window_bits=10", "; client_max_window_bits=10", true), ("; client_max_window_bits=10", "", true),
        ("; client_max_window_bits=10", "; client_max_window_bits=11", false),
    ]

    @Test(arguments: answers)
    func responseIsMatchedWithItsOffer(offer: String, response: String, isAnswer: Bool) throws {
        let offered = try #require(PermessageDeflateOffer(try Self.named("permessage-deflate" + offer)))
        let parameters = try #require(PermessageDeflateParameters(try Self.named("permessage-deflate" + response)))
        #expect(parameters.satisfies(offered) == isAnswer)
    }

    @Test func everyAcceptedOfferIsAnswered() throws {
        for policy in [DeflatePolicy(), Self.limited, Self.forgetful] {
            for (_, text, _) in Self.offers {
                for named in try ExtensionGrammar.parse([text]) {
                    guard let offer = PermessageDeflateOffer(named), let accepted = policy.accept(offer) else {
                        continue
                    }
                    #expect(accepted.satisfies(offer))
                    #expect(PermessageDeflateParameters(accepted.extensionElement) == accepted)
                    #expect(PermessageDeflateOffer(offer.extensionElement) == offer)
                }
            }
        }
    }

    @Test func preferredParametersAreOfferedBeforeNone() {
        #expect(
            DeflatePolicy().offers.map(\.extensionElement.rendered) == ["permessage-deflate; client_max_window_bits"])
        #expect(
            Self.limited.offers.map(\.extensionElement.rendered) == [
                "permessage-deflate; server_max_window_bits=10; client_max_window_bits=11",
                "permessage-deflate; client_max_window_bits=11",
            ])
        #expect(
            Self.forgetful.offers.map(\.extensionElement.rendered) == [
                "permessage-deflate; server_no_context_takeover; client_no_context_takeover; client_max_window_bits"
            ])
        #expect(DeflatePolicy(peerWindowBits: 9, requiresPeerWindow: true).offers.count == 1)
    }

    @Test func clientKeepsItsOfferedLimitsForAnyResponse() {
        let offer = PermessageDeflateOffer(clientNoContextTakeover: true, clientWindow: .limited(10))
        let silent = PermessageDeflateParameters().applyingClientLimits(of: offer)
        #expect(silent == PermessageDeflateParameters(clientNoContextTakeover: true, clientMaxWindowBits: 10))
        let smaller = PermessageDeflateParameters(clientMaxWindowBits: 9).applyingClientLimits(of: offer)
        #expect(smaller.clientWindowBits == 9)
        #expect(PermessageDeflateParameters().clientWindowBits == 15)
        #expect(PermessageDeflateParameters().serverWindowBits == 15)
    }

    @Test func policyIsClampedToItsRanges() {
        let low = DeflatePolicy(ownWindowBits: 0, peerWindowBits: -1, level: -5, memoryLevel: 0, minimumSize: -1)
        #expect(
            [low.ownWindowBits, low.peerWindowBits, low.level, low.memoryLevel, low.minimumSize] == [8, 8, 0, 1, 0])
        let high = DeflatePolicy(ownWindowBits: 16, peerWindowBits: 99, level: 10, memoryLevel: 10)
        #expect([high.ownWindowBits, high.peerWindowBits, high.level, high.memoryLevel] == [15, 15, 9, 9])
    }
}
