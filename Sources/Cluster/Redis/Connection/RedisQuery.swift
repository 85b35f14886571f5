import RedisEngine
import StreamTransport

/// One command on a connection of its own, which ends with the reply.
///
/// Confined to its loop.
final class RedisQuery {
    typealias Completion = (Result<RedisValue, RedisLinkFailure>) -> Void

    private let link: RedisLink
    private var completion: Completion?

    /// - Parameters:
    ///   - timeout: for connecting and the reply together.
    ///   - completion: called once, in a later turn, unless `cancel` is called first. An error reply is a success.
    init(
        _ command: RedisCommand, to address: RedisServerAddress, credentials: RedisCredentials?, timeout: Duration,
        _ context: RedisContext, _ completion: @escaping Completion
    ) {
        let requirements = RedisLink.Requirements(isRESP3: false, isPrimary: false)
        self.link = RedisLink(to: address, credentials: credentials, database: 0, requirements: requirements, context)
        self.completion = completion
        self.link.owner = self
        self.link.submit(command, timeout: timeout) { [weak self] result in
            switch result {
            case .success(let value): self?.finish(.success(value))
            case .failure(.server(let error)): self?.finish(.success(.error(error)))
            // The end of the link says more.
            case .failure(.notSent), .failure(.uncertain): break
            }
        }
        self.link.open()
    }

    func cancel() {
        self.completion = nil
        self.link.close()
    }

    private func finish(_ result: Result<RedisValue, RedisLinkFailure>) {
        self.link.close()
        self.completion.take()?(result)
    }
}

extension RedisQuery: RedisLinkOwner {
    func linkBecameReady(_ link: RedisLink) {}
    func link(_ link: RedisLink, pushed push: RedisPush) {}
    func link(_ link: RedisLink, changed channels: [[UInt8]], isSubscribed: Bool, refused: RedisServerError?) {}

    func linkEnded(_ link: RedisLink, _ failure: RedisLinkFailure) {
        self.finish(.failure(failure))
    }
}
