/// What to do with the reply of one command in a cluster: deliver it, send the command elsewhere, or try again later.
/// Bounded: nodes that send a command to each other in a circle end it with the error of the last. Only `TRYAGAIN` is
/// followed for as long as the caller allows, because a migration ends.
package struct RedisClusterRedirects: Sendable {
    /// `MOVED` errors that one command follows.
    package static let maximumMoves = 5
    /// Attempts while slots have no node that executes commands.
    package static let maximumPauses = 5
    /// Between two attempts: doubled each time.
    package static let firstPause = Duration.milliseconds(50)
    /// Between two attempts while a slot migrates, at most.
    package static let longestMigrationPause = Duration.milliseconds(400)

    package enum Action: Equatable, Sendable {
        /// The reply is the command's result.
        case deliver
        /// Send the command to this node, and wait for its reply.
        case resend(to: RedisEndpoint, isAsking: Bool)
        /// Send the command to the slot's node after this pause.
        case retry(after: Duration)
    }

    private var moves = 0
    private var pauses = 0
    private var migrationPause = Self.firstPause
    private var hasAsked = false

    package init() {}

    /// - Parameters:
    ///   - node: that replied.
    ///   - map: learns of moved slots.
    package mutating func replied(
        _ reply: RedisValue, from node: RedisEndpoint, map: inout RedisSlotMap
    ) -> Action {
        guard let error = reply.serverError else { return .deliver }
        switch error.code {
        case .moved(let slot, let redirection):
            let target = redirection.resolved(from: node)
            // A map that is full is corrected by asking for it again; the target serves this command anyway.
            try? map.moved(slot: slot, to: target)
            guard self.moves < Self.maximumMoves else { return .deliver }
            self.moves += 1
            return .resend(to: target, isAsking: false)
        case .ask(_, let redirection):
            // `ASK` holds for one command only, so the map stays as it is.
            guard !self.hasAsked else { return .deliver }
            self.hasAsked = true
            return .resend(to: redirection.resolved(from: node), isAsking: true)
        case .tryAgain:
            // Some keys are at the slot's next node, or nowhere. The next attempt may be sent there again.
            self.hasAsked = false
            defer { self.migrationPause = min(self.migrationPause * 2, Self.longestMigrationPause) }
            return .retry(after: self.migrationPause)
        case .clusterDown, .loading, .masterDown:
            guard self.pauses < Self.maximumPauses else { return .deliver }
            self.pauses += 1
            return .retry(after: Self.firstPause * (1 << (self.pauses - 1)))
        case .crossSlot, .readOnly, .busy, .noScript, .outOfMemory, .noAuthentication, .wrongPassword, .noPermission,
            .noProtocol, .wrongType, .generic, .other:
            return .deliver
        }
    }
}
