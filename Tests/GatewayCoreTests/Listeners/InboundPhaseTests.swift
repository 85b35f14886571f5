import GatewayConfiguration
import GatewayCore
import Testing

@Suite("Phases of an accepted connection")
struct InboundPhaseTests {
    private static let refusals: [AdmissionRefusal?] = [nil, .clientLimit, .clientAddress]

    private static var phases: [InboundPhase] {
        let open = Self.refusals.flatMap { refusal -> [InboundPhase] in
            [
                .detectingTLS(refusal), .securing(refusal), .request(isSecure: false, refusal),
                .request(isSecure: true, refusal),
            ]
        }
        return [.arriving] + open + [.handedOver, .ended]
    }

    @Test(arguments: Self.phases)
    func clientsAddressIsReadOnceAtTheBeginning(_ before: InboundPhase) {
        for (kind, acceptsPlain, refusal) in Self.listeners {
            var phase = before
            let step = phase.clientAddressKnown(kind, acceptsPlain: acceptsPlain, refusal: refusal)
            guard case .arriving = before else {
                #expect(step == .ignore && phase == before)
                continue
            }
            switch (kind.speaksTLS, acceptsPlain) {
            case (true, true): #expect(step == .detectTLS && phase == .detectingTLS(refusal))
            case (true, false): Self.expectHandshake(step, phase, before, refusal)
            case (false, _): Self.expectPlaintext(step, phase, kind, isSecure: false, refusal)
            }
        }
    }

    private static var listeners: [(ListenerKind, Bool, AdmissionRefusal?)] {
        ListenerKind.allCases.flatMap { kind in
            [false, true].flatMap { acceptsPlain in self.refusals.map { (kind, acceptsPlain, $0) } }
        }
    }

    private static func expectPlaintext(
        _ step: InboundPhase.Step, _ phase: InboundPhase, _ kind: ListenerKind, isSecure: Bool,
        _ refusal: AdmissionRefusal?
    ) {
        if kind.speaksWebSocket {
            #expect(step == .readRequest && phase == .request(isSecure: isSecure, refusal))
        } else {
            #expect(step == .handOver && phase == .handedOver)
        }
    }

    /// A client of a denied address gets none, which would cost more than its reset.
    private static func expectHandshake(
        _ step: InboundPhase.Step, _ phase: InboundPhase, _ before: InboundPhase, _ refusal: AdmissionRefusal?
    ) {
        if refusal == .clientAddress {
            #expect(step == .reset && phase == before)
        } else {
            #expect(step == .beginTLS && phase == .securing(refusal))
        }
    }

    /// 22 begins a TLS record of a handshake (RFC 8446 §5.1).
    @Test(arguments: Self.phases)
    func theFirstByteDecidesBetweenTLSAndPlaintext(_ before: InboundPhase) {
        for kind in ListenerKind.allCases {
            for byte in [22, UInt8(ascii: "G")] {
                var phase = before
                let step = phase.firstByteReceived(byte, kind)
                switch before {
                case .detectingTLS(let refusal) where byte == 22:
                    Self.expectHandshake(step, phase, before, refusal)
                case .detectingTLS(let refusal):
                    Self.expectPlaintext(step, phase, kind, isSecure: false, refusal)
                case .arriving, .securing, .request, .handedOver, .ended:
                    #expect(step == .ignore && phase == before)
                }
            }
        }
    }

    @Test(arguments: Self.phases)
    func theRequestFollowsTheTLSHandshake(_ before: InboundPhase) {
        for kind in ListenerKind.allCases {
            var phase = before
            let step = phase.secured(kind)
            guard case .securing(let refusal) = before else {
                #expect(step == .ignore && phase == before)
                continue
            }
            Self.expectPlaintext(step, phase, kind, isSecure: true, refusal)
        }
    }

    @Test(arguments: Self.phases)
    func aRefusedClientGetsItsStatusForItsRequest(_ before: InboundPhase) {
        var phase = before
        let action = phase.requestReceived()
        phase.routeFound()
        switch before {
        case .request(let isSecure, nil):
            #expect(action == .findRoute(isSecure: isSecure) && phase == .handedOver)
        case .request(_, let refusal?):
            #expect(action == .refuse(refusal))
        case .arriving, .detectingTLS, .securing, .handedOver, .ended:
            #expect(action == .ignore && phase == before)
        }
    }

    @Test(arguments: Self.phases)
    func theDeadlineIsAnsweredOnceTheRequestIsRead(_ phase: InboundPhase) {
        switch phase {
        case .request: #expect(phase.timedOut() == .refuse)
        case .arriving, .detectingTLS, .securing: #expect(phase.timedOut() == .reset)
        case .handedOver, .ended: #expect(phase.timedOut() == .ignore)
        }
    }

    @Test(arguments: Self.phases)
    func phaseEndsOnceUnlessTheConnectionIsHandedOver(_ before: InboundPhase) {
        var phase = before
        let action = phase.ended()
        switch before {
        case .arriving, .detectingTLS, .request: #expect(action == .end && phase == .ended)
        case .securing: #expect(action == .endHandshake && phase == .ended)
        case .handedOver, .ended: #expect(action == .ignore && phase == before)
        }
        #expect(phase.ended() == .ignore)
    }

    @Test(arguments: Self.phases)
    func phaseNamesThePhaseOfATermination(_ phase: InboundPhase) {
        switch phase {
        case .arriving: #expect(phase.terminationPhase == .proxyProtocol)
        case .detectingTLS, .securing: #expect(phase.terminationPhase == .tls)
        case .request, .handedOver, .ended: #expect(phase.terminationPhase == .openingHandshake)
        }
    }
}
