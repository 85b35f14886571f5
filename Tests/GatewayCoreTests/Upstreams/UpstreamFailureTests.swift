import GatewayCore
import Testing

@Suite("Responses to a client whose upstream fails")
struct UpstreamFailureTests {
    @Test(
        arguments: [
            (UpstreamFailure.unreachable, 502), (.proxy, 502), (.tls, 502), (.certificate, 502), (.ownResources, 503),
            (.invalidHandshake, 502), (.connectTimeout, 504),
            (.handshakeTimeout, 504), (.status(200), 502), (.status(302), 502), (.status(400), 502),
            (.status(401), 401), (.status(403), 403), (.status(404), 404), (.status(426), 502), (.status(429), 429),
            (.status(500), 502), (.status(502), 502), (.status(503), 503), (.status(504), 502),
        ] as [(UpstreamFailure, UInt16)])
    func failureHasItsStatusInTheOpeningHandshake(_ failure: UpstreamFailure, _ status: UInt16) {
        #expect(failure.status == status)
    }

    @Test(arguments: [401, 403, 404, 429, 503] as [UInt16])
    func responsesForTheClientAreForwarded(_ status: UInt16) {
        #expect(UpstreamFailure.status(status).forwardsResponse)
        #expect(UpstreamFailure.status(status).countsAgainstEndpoint == (status == 503))
    }

    @Test func otherFailuresAreNotForwarded() {
        for failure in [UpstreamFailure.status(500), .status(200), .unreachable, .connectTimeout, .tls, .certificate] {
            #expect(!failure.forwardsResponse)
            #expect(failure.countsAgainstEndpoint)
        }
    }

    @Test func localResourceFailureDoesNotCountAgainstTheEndpoint() {
        #expect(!UpstreamFailure.ownResources.countsAgainstEndpoint && UpstreamFailure.ownResources.isRetryable)
        #expect(TerminationReason(.ownResources).party == .gateway)
        #expect(TerminationReason(.unreachable).party == .upstream)
    }
}
