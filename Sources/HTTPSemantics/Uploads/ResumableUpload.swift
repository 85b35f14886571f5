import HTTPTypes

/// One resumable upload from the view of its client: what to do after each response and each interruption.
///
/// The first request carries the whole content and announces the protocol. A 104 response names the upload resource;
/// from then on the upload is continued after an interruption: HEAD asks the resource for its offset, and PATCH appends
/// what is missing.
/// - Source: draft-ietf-httpbis-resumable-upload, revisions 01 to 12.
package struct ResumableUpload: Equatable, Sendable {
    package enum Phase: Equatable, Sendable {
        /// The request that creates the upload is to be sent, or was sent.
        case creating
        /// Nothing is sent until the pause is over.
        case pausing
        /// HEAD is to be sent, or was sent.
        case retrievingOffset
        /// PATCH is to be sent, or was sent.
        case appending(UploadPart)
        /// DELETE is to be sent, or was sent.
        case cancelling
        /// The final response was received, or the upload has failed.
        case ended
    }

    /// Most requests after which an upload is continued without any progress.
    package static let fruitlessLimit = 8
    /// Most continuations of one upload.
    package static let continuationLimit = 1000
    /// Most parts into which a server may have the rest of an upload divided.
    package static let partLimit: Int64 = 100_000
    /// Longest pause, unless the server asks for a longer one.
    static let longestPause = Duration.seconds(60)
    /// Longest pause that a server may ask for.
    static let longestRetryAfter: Int64 = 300

    package private(set) var version: UploadVersion
    /// In bytes; `nil` if unknown.
    package let length: Int64?
    package private(set) var phase = Phase.creating
    /// Whether the server has named the upload resource, and it can be used.
    package private(set) var isResumable = false
    /// Whether the server may keep an upload resource that is not complete.
    private var isKept = false
    package private(set) var limits = UploadLimits()
    /// Bytes that the server has acknowledged; they cannot be lost again.
    package private(set) var acknowledged: Int64 = 0
    /// Whether the version was changed to that of the server.
    private var isVersionAdjusted = false
    private var fruitless = 0
    private var continuations = 0

    /// An upload that is yet to be created.
    package init(_ version: UploadVersion, length: Int64?) {
        self.version = version
        self.length = length
    }

    /// An upload that was created before. It begins by asking for the offset.
    package init(
        resuming version: UploadVersion, length: Int64?, acknowledged: Int64, limits: UploadLimits = UploadLimits()
    ) {
        self.version = version
        self.length = length
        self.acknowledged = acknowledged
        self.limits = limits
        self.isResumable = true
        self.isKept = true
        self.phase = .retrievingOffset
    }

    /// Fields of the next request, besides those of the program.
    package var requestFields: HTTPFields {
        switch self.phase {
        case .creating: self.version.creationFields(length: self.length)
        case .pausing, .retrievingOffset, .cancelling: self.version.offsetFields
        case .appending(let part): self.version.fields(of: part)
        case .ended: [:]
        }
    }

    // MARK: Informational responses

    package enum InformationalAction: Equatable, Sendable {
        /// The upload resource is this reference, to be resolved against the request's URL.
        case remember(String)
        /// The server takes no upload of this length. The reference is as for `remember`, and is to be cancelled.
        case refuse(limit: Int64, String?)
        case ignore
    }

    /// - Parameter now: when the response was received.
    package mutating func informationalReceived(
        status: Int, fields: HTTPFields, now: HTTPDate
    ) -> InformationalAction {
        guard status == 104, self.phase != .cancelling, UploadVersion(fields) == self.version else { return .ignore }
        let state = UploadState(fields, now: now)
        self.limits.update(state.limits)
        if let offset = state.offset, offset <= self.length ?? .max { self.acknowledge(offset) }
        let reference = self.resource(in: fields)
        if let limit = self.exceededLimit { return .refuse(limit: limit, reference) }
        return reference.map { .remember($0) } ?? .ignore
    }

    /// That of a part must name no resource, and a second one is not believed.
    private func resource(in fields: HTTPFields) -> String? {
        guard self.phase == .creating, !self.isResumable,
            case .reference(let reference) = RedirectLocation(status: 307, fields: fields)
        else { return nil }
        return reference
    }

    /// The server's limit for the whole content, if that is longer.
    private var exceededLimit: Int64? {
        guard let limit = self.limits.size, let length = self.length, length > limit else { return nil }
        return limit
    }

    private mutating func acknowledge(_ offset: Int64) {
        guard offset > self.acknowledged else { return }
        self.acknowledged = offset
        self.fruitless = 0
    }

    /// The reference of `remember` is a URL that can be used.
    package mutating func resourceFound() {
        guard self.phase == .creating else { return }
        (self.isResumable, self.isKept) = (true, true)
    }

    /// The request that creates the upload is sent again, with a challenge answered or on another connection: a resource
    /// that was named before is not its own.
    package mutating func creationRepeated() {
        guard self.phase == .creating else { return }
        (self.isResumable, self.isKept, self.acknowledged, self.limits) = (false, false, 0, UploadLimits())
    }

    // MARK: Interruptions

    package enum InterruptionAction: Equatable, Sendable {
        /// Asks for the offset after the pause; zero means now.
        case retrieveOffset(after: Duration)
        case giveUp
    }

    /// The connection was lost, or could not be made.
    package mutating func interrupted(now: HTTPDate) -> InterruptionAction {
        let action = self.pause(atLeast: 0)
        guard case .retrieveOffset(let pause) = action, self.expires(by: now.advanced(by: pause.components.seconds))
        else { return action }
        return .giveUp
    }

    /// Whether the resource's lifetime ends before `date`: then the upload cannot be continued.
    private mutating func expires(by date: HTTPDate) -> Bool {
        guard let expiry = self.limits.expiry, expiry <= date else { return false }
        (self.isResumable, self.isKept) = (false, false)
        return true
    }

    /// Begins an upload that was created before.
    /// - Returns: why that is impossible.
    package mutating func begin(now: HTTPDate) -> UploadFailure? {
        guard self.phase == .retrievingOffset, self.expires(by: now) else { return nil }
        self.phase = .ended
        return .expired
    }

    /// No request of the upload follows.
    private var isOver: Bool { self.phase == .ended || self.phase == .cancelling }

    private mutating func pause(atLeast retryAfter: Int64?) -> InterruptionAction {
        guard self.isResumable, !self.isOver, self.fruitless < Self.fruitlessLimit,
            self.continuations < Self.continuationLimit
        else { return .giveUp }
        let own = Self.pause(after: self.fruitless)
        self.fruitless += 1
        self.continuations += 1
        self.phase = .pausing
        let wanted = Duration.seconds(min(retryAfter ?? 0, Self.longestRetryAfter))
        return .retrieveOffset(after: max(own, wanted))
    }

    /// 100 ms, then four times as long each time.
    private static func pause(after count: Int) -> Duration {
        min(Duration.milliseconds(100) * (1 << (2 * min(count, 6))), self.longestPause)
    }

    /// The pause is over: HEAD is sent.
    package mutating func pauseEnded() {
        if self.phase == .pausing { self.phase = .retrievingOffset }
    }

    /// The response is final.
    package mutating func end() { (self.phase, self.isResumable, self.isKept) = (.ended, false, false) }

    /// It cannot be continued, although the server has its resource: the content is another one now, or refused.
    package mutating func becomeUnresumable() { self.isResumable = false }

    /// The upload is abandoned and cannot be continued.
    /// - Returns: whether the server is to be asked to delete its resource: DELETE is the next request.
    package mutating func cancelled() -> Bool {
        defer { (self.isResumable, self.isKept) = (false, false) }
        guard self.isKept else { return false }
        self.phase = .cancelling
        return true
    }

    // MARK: Responses

    /// What follows a final response.
    package enum ResponseAction: Equatable, Sendable {
        /// It is the response of the upload.
        case deliver
        /// Sends the whole request again, in the version of the server.
        case createAgain
        case retrieveOffset(after: Duration)
        case append(UploadPart)
        /// The resource is at another place: `retrieveOffset` there.
        case move
        case fail(UploadFailure)

        /// When the upload resource is used next; `nil` if it is not.
        fileprivate func due(now: HTTPDate) -> HTTPDate? {
            switch self {
            case .append, .move: now
            case .retrieveOffset(let pause): now.advanced(by: pause.components.seconds)
            case .deliver, .createAgain, .fail: nil
            }
        }
    }

    /// - Parameters:
    ///   - isWholePartSent: whether the request was sent to its end.
    ///   - now: when the response was received.
    package mutating func responseReceived(
        status: Int, fields: HTTPFields, isWholePartSent: Bool, now: HTTPDate
    ) -> ResponseAction {
        let state = UploadState(fields, now: now)
        self.limits.update(state.limits)
        let action: ResponseAction =
            switch self.phase {
            case .creating: self.creationAnswered(status, fields, state, isWholePartSent)
            case .retrievingOffset: self.offsetAnswered(status, state)
            case .appending(let part): self.partAnswered(status, state, part, isWholePartSent)
            case .pausing, .cancelling, .ended: .deliver
            }
        return self.apply(action, now: now)
    }

    private mutating func apply(_ action: ResponseAction, now: HTTPDate) -> ResponseAction {
        if let due = action.due(now: now), self.expires(by: due) {
            self.phase = .ended
            return .fail(.expired)
        }
        switch action {
        case .deliver: self.end()
        case .fail: self.phase = .ended
        case .append(let part): self.phase = .appending(part)
        case .move: self.phase = .retrievingOffset
        case .createAgain, .retrieveOffset: break
        }
        return action
    }

    private mutating func creationAnswered(
        _ status: Int, _ fields: HTTPFields, _ state: UploadState, _ isWholePartSent: Bool
    ) -> ResponseAction {
        if status == 400, !self.isVersionAdjusted, let spoken = UploadVersion(fields), spoken != self.version {
            self.isVersionAdjusted = true
            self.version = spoken
            self.creationRepeated()
            return .createAgain
        }
        if status == 413, self.isResumable, let limit = self.limits.partSize, limit < self.length ?? .max {
            return self.retry(state)
        }
        if 200...299 ~= status, state.isComplete == false { return self.retry(state) }
        return self.isInterruption(status, state, isWholePartSent, ofPart: false) ? self.retry(state) : .deliver
    }

    /// Whether a response is about the transfer, not from the target of the upload.
    private func isInterruption(
        _ status: Int, _ state: UploadState, _ isWholePartSent: Bool, ofPart isPart: Bool
    ) -> Bool {
        guard status >= 500, self.isResumable, state.isComplete != true else { return false }
        return !isWholePartSent || self.version.marksFinalResponse(ofPart: isPart)
    }

    private mutating func retry(_ state: UploadState, else last: ResponseAction = .deliver) -> ResponseAction {
        switch self.pause(atLeast: state.retryAfter) {
        case .retrieveOffset(let pause): .retrieveOffset(after: pause)
        case .giveUp: last
        }
    }

    private mutating func offsetAnswered(_ status: Int, _ state: UploadState) -> ResponseAction {
        switch status {
        case 200...299: return self.offsetReceived(state)
        case 301, 302, 307, 308: return .move
        case 404, 410: return self.gone(status)
        case 408, 425, 429, 500...: return self.retry(state, else: .fail(.refused(status: status)))
        default: return .fail(.refused(status: status))
        }
    }

    private mutating func gone(_ status: Int) -> ResponseAction {
        self.isKept = false
        return self.failForGood(.gone(status: status))
    }

    private mutating func offsetReceived(_ state: UploadState) -> ResponseAction {
        if let failure = self.contradiction(in: state) { return self.failForGood(failure) }
        // The response of the target was lost. This one is the last that there is.
        if state.isComplete == true { return .deliver }
        guard let offset = state.offset else { return .fail(.noOffset) }
        return self.appendPart(at: offset)
    }

    private mutating func failForGood(_ failure: UploadFailure) -> ResponseAction {
        self.isResumable = false
        return .fail(failure)
    }

    private func contradiction(in state: UploadState) -> UploadFailure? {
        if let length = self.length, let other = state.length, other != length { return .otherLength(other) }
        guard let offset = state.offset else { return nil }
        if offset < self.acknowledged { return .offsetDecreased(from: self.acknowledged, to: offset) }
        if let length = self.length, offset > length || state.isComplete == true && offset < length {
            return .wrongOffset(offset, length: length)
        }
        return nil
    }

    private mutating func appendPart(at offset: Int64) -> ResponseAction {
        self.acknowledge(offset)
        guard let length = self.length else {
            // The end of a stream is not known before it is read, so it cannot be divided.
            return .append(UploadPart(offset: offset, length: nil, isLast: true))
        }
        let rest = length - offset
        if let limit = self.exceededLimit { return self.failForGood(.tooLong(limit: limit)) }
        if let size = self.limits.partSize, rest / size >= Self.partLimit {
            return self.failForGood(.partsTooSmall(limit: size))
        }
        let count = min(rest, self.limits.partSize ?? rest)
        return .append(UploadPart(offset: offset, length: count, isLast: count == rest))
    }

    private mutating func partAnswered(
        _ status: Int, _ state: UploadState, _ part: UploadPart, _ isWholePartSent: Bool
    ) -> ResponseAction {
        switch status {
        case 409 where state.isComplete != true || self.isMismatch(state, part):
            // Without an offset it may be the answer of the target.
            return state.offset == nil && self.version.rawValue < 7 && part.isLast ? .deliver : self.retry(state)
        case _ where state.isComplete == true: return .deliver
        case 200...299: return self.partAccepted(state, part, isWholePartSent)
        case 307, 308: return self.continuations < Self.continuationLimit ? .move : .deliver
        case 404, 410: return self.gone(status)
        case 413 where self.limits.partSize.map { $0 < part.length ?? .max } == true: return self.retry(state)
        case 408, 425, 429: return self.retry(state)
        default: return self.isInterruption(status, state, isWholePartSent, ofPart: true) ? self.retry(state) : .deliver
        }
    }

    /// Whether a 409 names another offset than the part had.
    private func isMismatch(_ state: UploadState, _ part: UploadPart) -> Bool {
        guard let offset = state.offset else { return false }
        return offset != part.offset + (part.length ?? 0)
    }

    private mutating func partAccepted(
        _ state: UploadState, _ part: UploadPart, _ isWholePartSent: Bool
    ) -> ResponseAction {
        if part.isLast { return state.isComplete == nil ? .deliver : self.retry(state) }
        guard isWholePartSent, let length = part.length else { return self.retry(state) }
        let end = part.offset + length
        guard state.offset ?? end == end else { return self.retry(state) }
        return self.appendPart(at: end)
    }
}

/// Why an upload cannot be continued.
package enum UploadFailure: Error, Equatable, Sendable, CustomStringConvertible {
    /// The server does not have the upload any more.
    case gone(status: Int)
    /// The server's response has no offset.
    case refused(status: Int)
    case noOffset
    /// The server has lost bytes that it had acknowledged.
    case offsetDecreased(from: Int64, to: Int64)
    /// The offset is beyond the end, or the upload is complete before its end.
    case wrongOffset(Int64, length: Int64)
    case otherLength(Int64)
    /// The server does not keep unfinished uploads that long.
    case expired
    /// The server takes only fewer bytes, of the upload or of a part of it.
    case tooLong(limit: Int64)
    case partsTooSmall(limit: Int64)
    /// The server has moved an encrypted upload to a place without encryption.
    case unencrypted

    package var description: String {
        switch self {
        case .gone(let status): "the server does not have the upload any more (status \(status))"
        case .refused(let status): "the server refuses to continue the upload (status \(status))"
        case .noOffset: "the server does not tell how much of the upload it has"
        case .offsetDecreased(let old, let new):
            "the server has lost a part of the upload: it had \(old) bytes, and now has \(new)"
        case .wrongOffset(let offset, let length):
            "the server claims to have \(offset) bytes of an upload of \(length) bytes"
        case .otherLength(let length): "the server claims that the upload has \(length) bytes"
        case .expired: "the server kept the upload only until now"
        case .tooLong(let limit): "the server takes uploads of \(limit) bytes at most"
        case .partsTooSmall(let limit): "the server takes only parts of \(limit) bytes, which would be too many"
        case .unencrypted: "the server has moved it to a URL without encryption"
        }
    }
}
