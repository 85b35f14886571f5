/// What is being opened, for who may give it up meanwhile. Touched on its loop alone.
final class OpeningWatch {
    private var connection: (any OrderedConnection)?
    private var isGivenUp = false
    private var isOver = false

    func begun(_ connection: any OrderedConnection) {
        guard !self.isOver else { return }
        if self.isGivenUp { return connection.abandon(.operator, .stopped) }
        self.connection = connection
    }

    /// It stands, or never will.
    func answered() {
        self.isOver = true
        self.connection = nil
    }

    func giveUp() {
        self.isGivenUp = true
        let connection = self.connection
        self.connection = nil
        connection?.abandon(.operator, .stopped)
    }
}
