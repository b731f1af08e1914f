package schemas

func (s *SessionSpec) Default()                             {}
func (s *SessionSpec) Check(r *Report)                      {}
func (s *SessionSpec) References() []Reference              { return nil }
func (s *AgentSpec) Default()                               {}
func (s *AgentSpec) Check(r *Report)                        {}
func (s *AgentSpec) References() []Reference                { return nil }
func (s *WorkflowSpec) Default()                            {}
func (s *WorkflowSpec) Check(r *Report)                     {}
func (s *WorkflowSpec) References() []Reference             { return nil }
func (s *DAGSpec) Default()                                 {}
func (s *DAGSpec) Check(r *Report)                          {}
func (s *DAGSpec) References() []Reference                  { return nil }
func (s *ClarificationRequestSpec) Default()                {}
func (s *ClarificationRequestSpec) Check(r *Report)         {}
func (s *ClarificationRequestSpec) References() []Reference { return nil }
func (s *ReplySpec) Default()                               {}
func (s *ReplySpec) Check(r *Report)                        {}
func (s *ReplySpec) References() []Reference                { return nil }
func (s *ObservationSpec) Default()                         {}
func (s *ObservationSpec) Check(r *Report)                  {}
func (s *ObservationSpec) References() []Reference          { return nil }
func (s *ActionSpec) Default()                              {}
func (s *ActionSpec) Check(r *Report)                       {}
func (s *ActionSpec) References() []Reference               { return nil }
func (s *SettingsSpec) Default()                            {}
func (s *SettingsSpec) Check(r *Report)                     {}
func (s *SettingsSpec) References() []Reference             { return nil }
