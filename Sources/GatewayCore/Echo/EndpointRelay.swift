import SessionTasks

/// What answers at an endpoint of the gateway's own.
protocol EndpointRelay: WebSocketRelay {
    func start(_ task: WebSocketTask)
}

extension WebSocketEcho: EndpointRelay {}
extension ChatMember: EndpointRelay {}
