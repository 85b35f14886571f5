import GatewayCore
import SessionTasks
import StreamTransport
import Testing

@Suite("Failures and their termination reasons")
struct TerminationMappingTests {
    @Test(
        arguments: [
            (.cancelled, .stopped), (.timedOut, .timeout(.closing)), (.directionClosed, .system),
            (.usageError("x"), .system), (.ended, .system), (.closed, .system),
            (.connectionLost(TransportError(.reset)), .reset),
            (.connectionLost(TransportError(.truncated)), .truncated),
            (.connectionLost(TransportError(.system(.noMemory))), .system),
            (.cannotConnect(TransportError(.refused)), .unreachable),
            (.cannotConnect(TransportError(.ownResources(.noMemory))), .system),
            (.handshakeRefused(status: 404), .upstreamStatus(404)),
            (.protocolViolation(closeCode: 1002, "x"), .violation(closeCode: 1002)),
            (.messageTooLong(limit: 1), .violation(closeCode: 1009)), (.peerUnresponsive, .unresponsive),
        ] as [(TaskFailure, TerminationCause)])
    func aTasksFailureHasACause(_ failure: TaskFailure, _ cause: TerminationCause) {
        #expect(TerminationCause(failure) == cause)
    }

    @Test(
        arguments: [
            (.reset, .reset), (.truncated, .truncated), (.peerUnresponsive, .unresponsive),
            (.deadlinePassed(.securing), .timeout(.handshake)), (.refused, .system), (.noSuchFile, .system),
            (.unreachable(.noMemory), .system), (.ownResources(.noMemory), .system), (.system(.noMemory), .system),
        ] as [(TransportFailure, TerminationCause)])
    func aFailureBeforeTheEndpointHasACause(_ failure: TransportFailure, _ cause: TerminationCause) {
        #expect(TerminationCause(arriving: failure) == cause)
    }

    @Test(
        arguments: [
            (.unreachable, "upstream/connecting/unreachable"), (.tls, "upstream/connecting/tls"),
            (.proxy, "upstream/connecting/proxy"),
            (.certificate, "upstream/connecting/tls"), (.connectTimeout, "upstream/connecting/connect-timeout"),
            (.handshakeTimeout, "upstream/connecting/upstream-handshake-timeout"),
            (.status(503), "upstream/connecting/upstream-status(503)"),
            (.invalidHandshake, "upstream/connecting/upstream-handshake"),
            (.ownResources, "gateway/connecting/system"),
        ] as [(UpstreamFailure, String)])
    func anUnusableUpstreamIsTheReason(_ failure: UpstreamFailure, _ reason: String) {
        #expect(TerminationReason(failure).description == reason)
    }

    @Test(
        arguments: [
            (nil, .clean(closeCode: nil)), (1000, .clean(closeCode: 1000)), (1001, .clean(closeCode: 1001)),
            (3000, .clean(closeCode: 3000)), (4999, .clean(closeCode: 4999)),
            (1002, .abnormalClose(closeCode: 1002)), (1011, .abnormalClose(closeCode: 1011)),
        ] as [(UInt16?, TerminationCause)])
    func closeCodeDecidesWhetherTheEndIsClean(_ code: UInt16?, _ cause: TerminationCause) {
        #expect(TerminationCause(CloseSignal(code: code)) == cause)
    }
}
