import WireText

/// The state of one request and its response: two directions, each with its own end. `HTTPConnection` and
/// `HTTP2ClientStream` perform the actions.
package struct ExchangeProgress: Equatable {
    package enum Sending: Equatable {
        /// The head was sent, and the body waits for `100 Continue`.
        case awaitingContinue
        case body
        case done
        /// The response came before the end of the body, which is not sent to its end.
        case abandoned
    }

    package enum Receiving: Equatable {
        case awaitingHead(informational: Int)
        case content(ResponseFraming, received: Int64)
        case complete(ResponseFraming)
    }

    package private(set) var sending: Sending
    package private(set) var receiving = Receiving.awaitingHead(informational: 0)
    /// Whether the server switched protocols.
    package private(set) var isUpgraded = false
    private let method: String
    private let offersUpgrade: Bool
    /// Whether the connection may be used again, as far as the messages say so far.
    private(set) var keepsAlive: Bool

    package init(_ head: RequestHead, hasBody: Bool, expectsContinue: Bool) {
        self.sending = hasBody ? (expectsContinue ? .awaitingContinue : .body) : .done
        self.method = head.method
        self.offersUpgrade = head.fields["Upgrade"] != nil
        self.keepsAlive = !head.fields.list("Connection", contains: "close")
    }

    // MARK: Sending

    /// - Returns: whether to send the body without a `100 Continue`.
    package mutating func continueTimedOut() -> Bool {
        guard self.sending == .awaitingContinue else { return false }
        self.sending = .body
        return true
    }

    /// Bytes of the body were sent: a server may report its progress in informational heads for as long as there is some.
    package mutating func bodyProgressed() {
        if case .awaitingHead(2...) = self.receiving { self.receiving = .awaitingHead(informational: 1) }
    }

    package mutating func bodyEnded() {
        guard self.sending == .body else { return }
        self.sending = .done
    }

    // MARK: Receiving

    package enum InformationalAction: Equatable {
        case deliver(startsBody: Bool)
        case refuse(ResponseViolation)
    }

    package mutating func informationalReceived(_ head: ResponseHead, limit: Int) -> InformationalAction {
        guard case .awaitingHead(let count) = self.receiving else { return .refuse(.unsolicited) }
        guard count < limit else { return .refuse(.tooManyInformationalHeads) }
        self.receiving = .awaitingHead(informational: count + 1)
        guard head.status == 100, self.sending == .awaitingContinue else { return .deliver(startsBody: false) }
        self.sending = .body
        return .deliver(startsBody: true)
    }

    package enum HeadAction: Equatable {
        case deliver(ResponseFraming)
        case upgrade
        case refuse(ResponseViolation)
    }

    package mutating func headReceived(_ head: ResponseHead) -> HeadAction {
        guard case .awaitingHead = self.receiving else { return .refuse(.unsolicited) }
        if head.status == 101 { return self.upgradeReceived(head) }
        do throws(ResponseViolation) {
            let framing = try ResponseFraming.of(head, method: self.method)
            self.receiving = .content(framing, received: 0)
            if self.sending == .awaitingContinue { self.sending = .abandoned }
            self.keepsAlive = self.keepsAlive && framing != .untilClose && Self.keepsAlive(head)
            return .deliver(framing)
        } catch {
            return .refuse(error)
        }
    }

    /// RFC 9110 §7.8: only to a protocol that was offered, and only after the whole request was sent.
    private mutating func upgradeReceived(_ head: ResponseHead) -> HeadAction {
        guard self.offersUpgrade, self.sending == .done, head.fields["Upgrade"] != nil,
            head.fields.list("Connection", contains: "upgrade")
        else { return .refuse(.upgrade) }
        self.receiving = .complete(.none)
        self.isUpgraded = true
        return .upgrade
    }

    /// RFC 9112 §9.3.
    private static func keepsAlive(_ head: ResponseHead) -> Bool {
        if head.fields.list("Connection", contains: "close") { return false }
        return head.version > .http10 || head.fields.list("Connection", contains: "keep-alive")
    }

    package mutating func contentReceived(_ count: Int) {
        guard case .content(let framing, let received) = self.receiving else { return }
        self.receiving = .content(framing, received: received + Int64(count))
    }

    /// - Returns: whether the messages allow another request on the connection.
    package mutating func responseEnded() -> Bool {
        guard case .content(let framing, _) = self.receiving else { return false }
        self.receiving = .complete(framing)
        guard self.sending == .done else {
            self.sending = .abandoned
            return false
        }
        return self.keepsAlive
    }

    package enum Loss: Equatable {
        /// Not even an informational head was received.
        case beforeResponse
        case beforeHead
        case withinContent(received: Int64, expected: Int64?)
        /// The response was complete.
        case none
    }

    /// The part of the response that is lost if the connection ends now.
    package var loss: Loss {
        switch self.receiving {
        case .awaitingHead(informational: 0): .beforeResponse
        case .awaitingHead: .beforeHead
        case .content(.length(let expected), let received): .withinContent(received: received, expected: expected)
        case .content(_, let received): .withinContent(received: received, expected: nil)
        case .complete: .none
        }
    }
}
