/// How far one request and its response are: two directions, each with its own end. Decides; the connection performs.
package struct ExchangeProgress: Equatable {
    package enum Sending: Equatable {
        /// The head is out, and the server may say whether it wants the body.
        case awaitingContinue
        case body
        case done
        /// The response came first: the body is not sent, or not to its end.
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
    private var keepsAlive: Bool

    package init(_ head: RequestHead, hasBody: Bool, expectsContinue: Bool) {
        self.sending = hasBody ? (expectsContinue ? .awaitingContinue : .body) : .done
        self.method = head.method
        self.offersUpgrade = head.first("upgrade") != nil
        self.keepsAlive = !head.fields.contains {
            $0.isNamed("connection") && ASCIIText.list($0.value, has: "close")
        }
    }

    // MARK: Sending

    /// - Returns: whether the body is to be sent now, unasked.
    package mutating func continueTimedOut() -> Bool {
        guard self.sending == .awaitingContinue else { return false }
        self.sending = .body
        return true
    }

    package mutating func bodyEnded() {
        guard self.sending == .body else { return }
        self.sending = .done
    }

    // MARK: Receiving

    package enum InformationalAction: Equatable {
        case tell(startsBody: Bool)
        case refuse(ResponseViolation)
    }

    package mutating func informationalReceived(_ head: ResponseHead, limit: Int) -> InformationalAction {
        guard case .awaitingHead(let count) = self.receiving else { return .refuse(.unsolicited) }
        guard count < limit else { return .refuse(.tooManyInformationalHeads) }
        self.receiving = .awaitingHead(informational: count + 1)
        guard head.status == 100, self.sending == .awaitingContinue else { return .tell(startsBody: false) }
        self.sending = .body
        return .tell(startsBody: true)
    }

    package enum HeadAction: Equatable {
        case tell(ResponseFraming)
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
            return .tell(framing)
        } catch {
            return .refuse(error)
        }
    }

    /// RFC 9110 §7.8: only to what was offered, and only once the request was sent whole.
    private mutating func upgradeReceived(_ head: ResponseHead) -> HeadAction {
        guard self.offersUpgrade, self.sending == .done, head.first("upgrade") != nil,
            head.lists("upgrade", in: "connection")
        else { return .refuse(.upgrade) }
        self.receiving = .complete(.none)
        self.isUpgraded = true
        return .upgrade
    }

    /// RFC 9112 §9.3.
    private static func keepsAlive(_ head: ResponseHead) -> Bool {
        if head.lists("close", in: "connection") { return false }
        return head.minorVersion > 0 || head.lists("keep-alive", in: "connection")
    }

    package mutating func contentReceived(_ count: Int) {
        guard case .content(let framing, let received) = self.receiving else { return }
        self.receiving = .content(framing, received: received + Int64(count))
    }

    /// The response is complete.
    /// - Returns: whether the connection can serve another request, as far as the messages say.
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
        /// Nothing of the response had come.
        case beforeResponse
        case beforeHead
        case withinContent(received: Int64, expected: Int64?)
        /// The response was complete.
        case none
    }

    /// What a connection that ends now takes with it.
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
