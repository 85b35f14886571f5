/// Whoever is in a chat room.
protocol ChatHearer: AnyObject {
    /// Someone else said this.
    func hear(_ message: ChatMessage)
}

extension ChatMember: ChatHearer {}
