/// Does what a task is told, by the kind of task. Called from any thread.
protocol TaskDriving: AnyObject, Sendable {
    /// The task may go on, or begin.
    func resumed()
    /// Nothing more is to happen until `resumed`.
    func suspended()
    /// The task is to end with `URLError.cancelled`.
    func cancelled()
    /// 0 to 1.
    func priorityChanged(_ priority: Float)
}
