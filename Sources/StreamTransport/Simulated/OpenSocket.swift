/// What a simulated descriptor stands for.
enum OpenSocket {
    case stream(SimulatedStream)
    case listener(SimulatedListener)

    /// What epoll would report of it, whatever the interest.
    var readiness: Interest {
        switch self {
        case .stream(let stream): stream.readiness
        case .listener(let listener): listener.readiness
        }
    }

    var watchers: Watchers {
        switch self {
        case .stream(let stream): stream.watchers
        case .listener(let listener): listener.watchers
        }
    }

    func close() {
        switch self {
        case .stream(let stream): stream.close()
        case .listener(let listener): listener.close()
        }
    }
}
